import type { PoolClient } from 'pg';
import type { JobChange } from '../../domain/job-records.ts';
import { jobValues } from '../tables/jobs.table.ts';
import { columnArrays, unnest } from './column-arrays.ts';
import type { QueueContext } from './queue-context.ts';

const RENEWED_COLUMNS = ['endpoint_id', 'seq', 'due_at'] as const;

/** Renews the leases of a batch in one statement. */
export function renewLeases({
  queue,
}: QueueContext): (changes: readonly JobChange[], client: PoolClient) => Promise<void> {
  const renew = queue.rows(
    `update jobs set due_at = given.due_at from ${unnest(RENEWED_COLUMNS)}
      where jobs.endpoint_id = given.endpoint_id and jobs.seq = given.seq`,
    'renew',
  );
  return async (changes, client) => {
    await renew(
      columnArrays(
        changes.map(({ job }) => jobValues(job)),
        RENEWED_COLUMNS,
      ),
      client,
    );
  };
}
