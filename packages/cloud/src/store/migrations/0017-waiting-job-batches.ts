import type { Migration } from './migration.ts';

/**
 * On SQLite too, jobs that came together share a place: `seqs` is the list of their numbers, where there are
 * several, and `size` says how many.
 */
export const waitingJobBatches: Migration = {
  name: 'places that jobs share',
  statements: [
    { sqlite: 'alter table job_waiting add column size integer not null default 1', postgres: 'select 1' },
    { sqlite: 'alter table job_waiting add column seqs text', postgres: 'select 1' },
  ],
};
