import type { PoolClient } from 'pg';
import type { JobChange } from '../../domain/job-records.ts';
import { jobValues } from '../tables/jobs.table.ts';
import { columnArrays, unnest } from './column-arrays.ts';
import type { QueueContext } from './queue-context.ts';

/**
 * So many characters of results are written by one statement: on their way they are in memory several times.
 */
const MAX_STATEMENT_CHARS = 8 * 1024 * 1024;

const FINISHED_COLUMNS = [
  'endpoint_id',
  'seq',
  'status',
  'taken_at',
  'ended_at',
  'due_at',
  'output',
  'error',
] as const;

/**
 * Writes the ends of a batch and their results in one statement. The rules have checked, under the lock of
 * this transaction, that workers hold their leases.
 */
export function finishJobs({
  queue,
}: QueueContext): (changes: readonly JobChange[], client: PoolClient) => Promise<void> {
  // `next_check_at` stays: see `nextCheckAt`.
  const finish = queue.rows(
    `update jobs set status = given.status, lease = null, taken_at = given.taken_at, ended_at = given.ended_at,
      due_at = given.due_at, output = given.output, error = given.error
      from ${unnest(FINISHED_COLUMNS)} where jobs.endpoint_id = given.endpoint_id and jobs.seq = given.seq`,
    'finish',
  );
  return async (changes, client) => {
    for (const some of splitBySize(changes)) {
      const rows = some.map(({ job, output = null, error = null }) => ({ ...jobValues(job), output, error }));
      await finish(columnArrays(rows, FINISHED_COLUMNS), client);
    }
  };
}

function splitBySize(changes: readonly JobChange[]): JobChange[][] {
  const pieces: JobChange[][] = [];
  let size = Infinity;
  for (const change of changes) {
    const more = (change.output?.length ?? 0) + (change.error?.length ?? 0);
    if (size + more > MAX_STATEMENT_CHARS) {
      pieces.push([]);
      size = 0;
    }
    size += more;
    pieces.at(-1)?.push(change);
  }
  return pieces;
}
