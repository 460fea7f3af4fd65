import type { Migration } from './migration.ts';

/**
 * What a worker sends again after a broken connection is known by the number that it gave to it.
 * The number stands beside the chunk, so that both are kept or neither, and the last row of a
 * stream tells where it ends. A job without chunks has no row, and pays nothing.
 */
export const chunkNumbers: Migration = {
  name: 'numbers of workers on chunks',
  statements: ['alter table job_chunks add column worker_number integer not null default 0'],
};
