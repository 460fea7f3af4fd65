import { positionAfter } from '../../domain/job-records.ts';
import type { ChunkPosition } from '../../domain/job-records.ts';
import type { JobStore } from '../job-store.ts';
import { JOB_SELECT, jobFromValues } from '../tables/jobs.table.ts';
import type { QueueContext } from './queue-context.ts';
import { inTransaction } from './transactions.ts';

/** What running jobs stream. */
export function jobChunks({ statements, pool }: QueueContext): Pick<JobStore, 'appendChunks' | 'listChunks'> {
  /** The lock makes two servers that hear the same worker come one after the other. */
  const lockJob = statements.arrays(
    `select ${JOB_SELECT} from jobs as job where job.endpoint_id = :endpoint_id and job.seq = :seq for update`,
  );
  const selectLast = statements.rows<{ number: number; worker_number: number }>(
    `select number, worker_number from job_chunks where endpoint_id = :endpoint_id and seq = :seq
      order by number desc limit 1`,
  );
  const insert = statements.rows(
    `insert into job_chunks (endpoint_id, seq, number, worker_number, chunk)
      select :endpoint_id, :seq, :last::int + given.turn, given.worker_number, given.chunk
      from unnest(:chunks::text[], :worker_numbers::int[]) with ordinality as given (chunk, worker_number, turn)`,
  );
  const selectAfter = statements.rows<{ number: number; chunk: string }>(
    `select number, chunk from (
        select number, chunk, sum(length(chunk)) over (order by number) - length(chunk) as before
        from job_chunks where endpoint_id = :endpoint_id and seq = :seq and number > :after) as sized
      where before = 0 or before + length(chunk) <= :bytes order by number`,
  );

  return {
    appendChunks: (endpoint_id, seq, next) =>
      inTransaction(pool, async (client) => {
        const [values] = await lockJob({ endpoint_id, seq }, client);
        if (values === undefined) return undefined;
        // A statement of its own: chunks that the lock waited for show only in the next one.
        const [last] = await selectLast({ endpoint_id, seq }, client);
        const end: ChunkPosition = { number: last?.number ?? 0, workerNumber: last?.worker_number ?? 0 };
        const chunks = next(jobFromValues(values), end);
        if (chunks === undefined) return undefined;
        if (chunks.length > 0)
          await insert(
            {
              endpoint_id,
              seq,
              last: end.number,
              chunks: chunks.map(({ text }) => text),
              worker_numbers: chunks.map(({ workerNumber }) => workerNumber),
            },
            client,
          );
        return positionAfter(end, chunks);
      }),

    listChunks: async (endpoint_id, seq, after, bytes) =>
      (await selectAfter({ endpoint_id, seq, after, bytes })).map(({ number, chunk }) => ({
        number,
        text: chunk,
      })),
  };
}
