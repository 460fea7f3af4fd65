import { isPastRetention } from '../../domain/job-records.ts';
import type { Idempotency, Job, JobWithPayloads } from '../../domain/job-records.ts';
import { countDeltas } from '../job-store.ts';
import type { JobStore, SubmitResult } from '../job-store.ts';
import {
  JOB_SELECT,
  JOB_SELECT_LENGTH,
  jobFromValues,
  NEW_JOB_COLUMNS,
  newJobValues,
} from '../tables/jobs.table.ts';
import { deleteJob } from './delete-job.ts';
import type { QueueContext } from './queue-context.ts';

/** Adds jobs to the queue. */
export function submitJobs(queue: QueueContext): Pick<JobStore, 'submit'> {
  const { statements, group, counts } = queue;
  /** Nothing where the number is taken: the same submission came before, and its answer was lost. */
  const insertJob = statements.insert('insert or ignore into jobs', NEW_JOB_COLUMNS);
  const insertRequest = statements.insert('insert into job_requests', ['seq', 'endpoint_id', 'request']);
  const selectKeyHolder = statements.arrays(
    `select ${JOB_SELECT}, job.body_hash from jobs as job
      where job.endpoint_id = :endpoint_id and job.idempotency_key = :key`,
  );
  const selectId = statements.rows<{ id: string }>(
    'select id from jobs where seq = :seq and endpoint_id = :endpoint_id',
  );
  const remove = deleteJob(queue);

  /** The job that has the key. One whose retention has ended makes room. */
  function keyHolder(job: Job, key: string): SubmitResult | undefined {
    const values = selectKeyHolder.get({ endpoint_id: job.endpointId, key });
    if (values === undefined) return undefined;
    const holder = jobFromValues(values);
    if (isPastRetention(holder, job.createdAt)) {
      remove(holder);
      return undefined;
    }
    return {
      job: holder,
      created: holder.id === job.id,
      seenByTakes: false,
      bodyHash: values[JOB_SELECT_LENGTH] as string,
    };
  }

  function insert({ job, payloads }: JobWithPayloads, idempotency: Idempotency | undefined): SubmitResult {
    const holder = idempotency === undefined ? undefined : keyHolder(job, idempotency.key);
    if (holder !== undefined) return holder;
    if (insertJob(newJobValues(job, idempotency)) === 0) {
      const found = selectId.get({ seq: job.seq, endpoint_id: job.endpointId });
      return { job, created: found?.id === job.id, seenByTakes: false, bodyHash: null };
    }
    insertRequest([job.seq, job.endpointId, payloads.request]);
    counts.add(job.endpointId, countDeltas(undefined, job));
    return { job, created: true, seenByTakes: true, bodyHash: idempotency?.bodyHash ?? null };
  }

  return {
    submit: (submitted, idempotency, unacknowledged = false) => {
      const work = (): SubmitResult => insert(submitted, idempotency);
      // A client that only hears of the end is answered after that: its commit syncs this one too.
      return unacknowledged ? group.runUnsynced(work) : group.run(work);
    },
  };
}
