import type { Job, JobChange, Payloads } from '../../domain/job-records.ts';
import { isFinish, isRenewal, mustCheckEarlier } from '../job-row-changes.ts';
import { countedAfter } from '../job-store.ts';
import type { JobChangeRequest, JobChangeResult, JobStore } from '../job-store.ts';
import { JOB_SELECT, jobFromValues, jobValues, MUTABLE_COLUMNS } from '../tables/jobs.table.ts';
import { deliveryValues, mergedPayloads } from '../tables/webhook-deliveries.table.ts';
import { deleteJob } from './delete-job.ts';
import { SAVE_DELIVERY } from './deliveries.ts';
import { finishJob } from './finish.ts';
import type { QueueContext } from './queue-context.ts';
import { renewLease } from './renew.ts';
import { assignments } from './statements.ts';

/**
 * Every change of a job that exists: its end, a cancellation, a lease renewal, a retry, a time-out. The rule
 * (`next`) decides on the job as it is in this transaction; nothing comes between reading it and writing what
 * it decided.
 */
export function changeJobs(queue: QueueContext): Pick<JobStore, 'change' | 'changeAll'> {
  const { statements, group, counts } = queue;
  const selectJob = statements.arrays(
    `select ${JOB_SELECT} from jobs as job where job.seq = :seq and job.endpoint_id = :endpoint_id`,
  );
  const selectPayloads = statements.rows<Payloads & Record<string, never>>(
    'select request, output, error from job_requests join jobs using (seq) where seq = :seq',
  );
  const update = statements.write(`update jobs set ${assignments(MUTABLE_COLUMNS)} where seq = :seq`);
  const updateOutput = statements.write('update jobs set output = :output where seq = :seq');
  const updateError = statements.write('update jobs set error = :error where seq = :seq');
  /** It may have to be looked at earlier than was planned. */
  const checkEarlier = statements.write(
    'update jobs set next_check_at = min(next_check_at, :ttl_at) where seq = :seq',
  );
  const deleteChunks = statements.write(
    'delete from job_chunks where endpoint_id = :endpoint_id and seq = :seq',
  );
  const saveDelivery = statements.write(SAVE_DELIVERY);
  const finish = finishJob(queue);
  const renew = renewLease(queue);
  const remove = deleteJob(queue);

  function change(request: JobChangeRequest): JobChangeResult | undefined {
    const { endpointId, seq } = request;
    const values = selectJob.get({ seq, endpoint_id: endpointId });
    if (values === undefined) return undefined;
    const before = jobFromValues(values);
    const decided = request.next(before);
    if (decided === undefined) return { before, after: before, changed: false };
    write(before, decided);
    counts.addChange(endpointId, before, countedAfter(decided));
    return { before, after: decided.job, changed: true };
  }

  function write(before: Job, decided: JobChange): void {
    const { job, delivery } = decided;
    if (delivery !== undefined) {
      const stored = selectPayloads.get({ seq: job.seq }) as Payloads;
      saveDelivery(deliveryValues(delivery(mergedPayloads(stored, decided))));
    }
    if (decided.remove === true) return remove(before);
    if (decided.clearChunks === true) deleteChunks({ endpoint_id: job.endpointId, seq: job.seq });
    if (isFinish(before, decided)) finish(decided);
    else if (isRenewal(before, decided)) renew(decided);
    else writeAll(before, decided);
  }

  function writeAll(before: Job, { job, output, error }: JobChange): void {
    update(jobValues(job));
    if (output !== undefined) updateOutput({ seq: job.seq, output });
    if (error !== undefined) updateError({ seq: job.seq, error });
    if (mustCheckEarlier(before, job)) checkEarlier({ seq: job.seq, ttl_at: job.ttlAt });
  }

  return {
    change: (endpointId, seq, next) => group.run(() => change({ endpointId, seq, next })),
    changeAll: (requests) => group.run(() => requests.map(change)),
  };
}
