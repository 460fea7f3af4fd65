import type { Migration } from './migration.ts';

/** Finds the failed jobs among many others. Only jobs that end with an error pay for it. */
export const failedJobs: Migration = {
  name: 'an index of failed jobs',
  statements: [
    {
      // SQLite adds the key, which is the number.
      sqlite: `create index jobs_failed on jobs (endpoint_id) where status in ('FAILED', 'TIMED_OUT')`,
      postgres: `create index jobs_failed on jobs (endpoint_id, seq) where status in ('FAILED', 'TIMED_OUT')`,
    },
  ],
};
