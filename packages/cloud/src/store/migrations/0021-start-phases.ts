import type { Migration } from './migration.ts';

/** With `created_at`, `started_at` and `ready_at`, these are the phases of a worker's start. */
export const startPhases: Migration = {
  name: 'when the image of a worker was ready, and when it got its first job',
  statements: [
    'alter table workers add column image_ready_at bigint',
    'alter table workers add column first_job_at bigint',
  ],
};
