import type { Migration } from './migration.ts';

/**
 * Columns of the queue get names that say what they hold: `next_check_at` (was `look_at`) is the latest time at
 * which the reaper must check the row, and `writer` (was `lane`) is who adds to a row of counts. Servers of
 * earlier versions cannot work on this schema; those of the last release cannot either, since 0018 and 0020.
 */
export const queueColumnNames: Migration = {
  name: 'clearer names for columns of the queue',
  statements: [
    'alter table jobs rename column look_at to next_check_at',
    'alter table job_counts rename column lane to writer',
    'alter table job_history rename column lane to writer',
    // SQLite cannot rename an index.
    { sqlite: 'drop index jobs_to_look_at', postgres: 'alter index jobs_to_look_at rename to jobs_to_check' },
    { sqlite: 'create index jobs_to_check on jobs (next_check_at)', postgres: 'select 1' },
  ],
};
