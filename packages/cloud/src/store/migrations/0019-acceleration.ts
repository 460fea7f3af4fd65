import type { Migration } from './migration.ts';

/** Null in `accelerate` is the server's setting. */
export const acceleration: Migration = {
  name: 'which endpoints and workers are accelerated',
  statements: [
    'alter table endpoints add column accelerate integer',
    'alter table job_workers add column accelerated integer not null default 0',
  ],
};
