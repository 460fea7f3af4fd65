import { positionAfter } from '../../domain/job-records.ts';
import type { ChunkPosition } from '../../domain/job-records.ts';
import type { JobStore } from '../job-store.ts';
import { JOB_SELECT, jobFromValues } from '../tables/jobs.table.ts';
import type { QueueContext } from './queue-context.ts';
import { columnsAndValues } from './statements.ts';

/** What running jobs stream. */
export function jobChunks({
  statements,
  group,
}: QueueContext): Pick<JobStore, 'appendChunks' | 'listChunks'> {
  const selectJob = statements.arrays(
    `select ${JOB_SELECT} from jobs as job where job.seq = :seq and job.endpoint_id = :endpoint_id`,
  );
  const selectLast = statements.rows<{ number: number; worker_number: number }>(
    `select number, worker_number from job_chunks where endpoint_id = :endpoint_id and seq = :seq
      order by number desc limit 1`,
  );
  const insert = statements.write(
    `insert into job_chunks ${columnsAndValues(['endpoint_id', 'seq', 'number', 'worker_number', 'chunk'])}`,
  );
  const selectAfter = statements.rows<{ number: number; chunk: string }>(
    `select number, chunk from job_chunks where endpoint_id = :endpoint_id and seq = :seq and number > :after
      order by number`,
  );

  return {
    appendChunks: (endpoint_id, seq, next) =>
      group.run(() => {
        const values = selectJob.get({ endpoint_id, seq });
        if (values === undefined) return undefined;
        const last = selectLast.get({ endpoint_id, seq });
        const end: ChunkPosition = { number: last?.number ?? 0, workerNumber: last?.worker_number ?? 0 };
        const chunks = next(jobFromValues(values), end);
        if (chunks === undefined) return undefined;
        chunks.forEach(({ text, workerNumber }, index) =>
          insert({
            endpoint_id,
            seq,
            number: end.number + index + 1,
            worker_number: workerNumber,
            chunk: text,
          }),
        );
        return positionAfter(end, chunks);
      }),

    listChunks: (endpoint_id, seq, after, bytes) =>
      group.read(() => {
        const found: { number: number; text: string }[] = [];
        let size = 0;
        for (const { number, chunk } of selectAfter.iterate({ endpoint_id, seq, after })) {
          size += chunk.length;
          if (found.length > 0 && size > bytes) break;
          found.push({ number, text: chunk });
        }
        return found;
      }, [seq]),
  };
}
