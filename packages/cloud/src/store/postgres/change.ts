import type { PoolClient } from 'pg';
import type { Job, JobChange, Payloads } from '../../domain/job-records.ts';
import { isFinish, isRenewal, mustCheckEarlier } from '../job-row-changes.ts';
import { countDeltas, countedAfter } from '../job-store.ts';
import type { CountDeltas, JobChangeRequest, JobChangeResult, JobStore } from '../job-store.ts';
import { JOB_SELECT, jobFromValues, jobValues, MUTABLE_COLUMNS } from '../tables/jobs.table.ts';
import { deliveryValues, mergedPayloads } from '../tables/webhook-deliveries.table.ts';
import { columnArrays, unnest } from './column-arrays.ts';
import { CommitBatcher } from './commit-batcher.ts';
import { SAVE_DELIVERY } from './deliveries.ts';
import { finishHandedOut } from './finish-handed-out.ts';
import { finishJobs } from './finish.ts';
import { ADD_COUNTS, addCountDeltas, countValues } from './job-counts.ts';
import { ADD_HISTORY, HistorySums } from './history-sums.ts';
import { JOB_KEY_COLUMNS, jobKey } from './job-key.ts';
import type { QueueContext } from './queue-context.ts';
import { renewLeases } from './renew.ts';
import { inTransaction, withTransactionRetries } from './transactions.ts';

/** With 500, ends fell behind takes in `drain`; with 2,000 they keep up. */
const MAX_CHANGE_BATCH = 2_000;

const UPDATED_COLUMNS = [
  ...JOB_KEY_COLUMNS,
  ...MUTABLE_COLUMNS,
  'output',
  'has_output',
  'error',
  'has_error',
  'check_earlier',
] as const;

const KEYS = `(select endpoint_id, seq from ${unnest(JOB_KEY_COLUMNS)})`;

/** What a batch makes of one job: as it was before, and what is written of it. */
interface PendingWrite {
  before: Job;
  change: JobChange;
  /** The batch changed it more than once. */
  isMerged: boolean;
}

/**
 * Every change of a job that exists: its end, a cancellation, a lease renewal, a retry, a time-out. Changes
 * that arrive while a commit is on its way share the next one, which is one transaction: it locks the jobs,
 * asks each rule (`next`) on the job as it is then, and writes what they decided.
 */
export function changeJobs(context: QueueContext): Pick<JobStore, 'change' | 'changeAll'> {
  const { queue, queuePool, server, observer } = context;
  // In the order of their keys, so that two servers never wait for each other. `lateral` has each row found
  // by its key.
  const lockJobs = queue.arrays(
    `select job.* from
      (select distinct endpoint_id, seq from ${unnest(JOB_KEY_COLUMNS)} order by endpoint_id, seq) as given,
      lateral (select ${JOB_SELECT} from jobs as job
        where job.endpoint_id = given.endpoint_id and job.seq = given.seq for update) as job`,
    'lock jobs',
  );
  const update = queue.rows(
    `update jobs set ${MUTABLE_COLUMNS.map((column) => `${column} = given.${column}`).join(', ')},
      output = case when given.has_output = 1 then given.output else jobs.output end,
      error = case when given.has_error = 1 then given.error else jobs.error end,
      next_check_at = case when given.check_earlier = 1 then least(jobs.next_check_at, given.ttl_at) else jobs.next_check_at end
      from ${unnest(UPDATED_COLUMNS)} where jobs.endpoint_id = given.endpoint_id and jobs.seq = given.seq`,
    'update jobs',
  );
  const deleteFrom = (table: string): ReturnType<typeof queue.rows> =>
    queue.rows(`delete from ${table} where (endpoint_id, seq) in ${KEYS}`, `delete from ${table}`);
  const deleteChunks = deleteFrom('job_chunks');
  const deleteRequests = deleteFrom('job_requests');
  const deleteRows = deleteFrom('jobs');
  const addCounts = queue.rows(ADD_COUNTS, 'add counts');
  const addHistory = queue.rows(ADD_HISTORY, 'add history');
  const selectPayloads = queue.rows<Payloads>(
    `select request, output, error from jobs join job_requests using (endpoint_id, seq)
      where endpoint_id = :endpoint_id and seq = :seq`,
  );
  const saveDelivery = queue.rows(SAVE_DELIVERY);
  const finish = finishJobs(context);
  const finishAtOnce = finishHandedOut(context);
  const renew = renewLeases(context);

  async function apply(
    requests: readonly JobChangeRequest[],
    client: PoolClient,
  ): Promise<(JobChangeResult | undefined)[]> {
    const locked = await lockJobs(
      columnArrays(
        requests.map(({ endpointId, seq }) => ({ endpoint_id: endpointId, seq })),
        JOB_KEY_COLUMNS,
      ),
      client,
    );
    const jobs = new Map(
      locked.map(jobFromValues).map((job) => [jobKey(job.endpointId, job.seq), job] as const),
    );
    const writes = new Map<string, PendingWrite>();
    const counts = new Map<string, CountDeltas>();
    const history = new HistorySums();
    const results: (JobChangeResult | undefined)[] = [];
    for (const request of requests) {
      const { endpointId } = request;
      const key = jobKey(endpointId, request.seq);
      const before = jobs.get(key);
      const change = before && request.next(before);
      if (before === undefined || change === undefined) {
        results.push(before && { before, after: before, changed: false });
        continue;
      }
      if (change.delivery !== undefined) await writeDelivery(change, writes.get(key), client);
      addCountDeltas(counts, endpointId, countDeltas(before, countedAfter(change)));
      history.add(endpointId, before, countedAfter(change));
      // A later request of the same batch sees what this one did; only the last version is written, with the
      // payloads of both.
      const earlier = writes.get(key);
      writes.set(key, {
        before: earlier?.before ?? before,
        change: { ...earlier?.change, ...change },
        isMerged: earlier !== undefined,
      });
      if (change.remove === true) jobs.delete(key);
      else jobs.set(key, change.job);
      results.push({ before, after: change.job, changed: true });
    }
    await write([...writes.values()], client);
    if (counts.size > 0) await addCounts({ ...countValues(counts), writer: `${server} change` }, client);
    if (!history.isEmpty) await addHistory({ ...history.values(), writer: `${server} change` }, client);
    return results;
  }

  async function write(writes: readonly PendingWrite[], client: PoolClient): Promise<void> {
    const removed = writes.filter(({ change }) => change.remove === true);
    const kept = writes.filter(({ change }) => change.remove !== true);
    const finished = kept.filter(({ before, change, isMerged }) => !isMerged && isFinish(before, change));
    const renewed = kept.filter(({ before, change, isMerged }) => !isMerged && isRenewal(before, change));
    const others = kept.filter((one) => !finished.includes(one) && !renewed.includes(one));
    const cleared = writes.filter(({ change }) => change.remove === true || change.clearChunks === true);
    if (cleared.length > 0) await deleteChunks(keyArrays(cleared), client);
    if (finished.length > 0) await finish(changesOf(finished), client);
    if (renewed.length > 0) await renew(changesOf(renewed), client);
    if (others.length > 0) await update(columnArrays(others.map(updatedRow), UPDATED_COLUMNS), client);
    if (removed.length > 0) {
      await deleteRequests(keyArrays(removed), client);
      await deleteRows(keyArrays(removed), client);
    }
  }

  async function writeDelivery(
    change: JobChange,
    earlier: PendingWrite | undefined,
    client: PoolClient,
  ): Promise<void> {
    const { endpointId, seq } = change.job;
    const [stored] = await selectPayloads({ endpoint_id: endpointId, seq }, client);
    if (stored === undefined || change.delivery === undefined) return;
    const before = earlier === undefined ? stored : mergedPayloads(stored, earlier.change);
    await saveDelivery(deliveryValues(change.delivery(mergedPayloads(before, change))), client);
  }

  const changes = new CommitBatcher<JobChangeRequest, JobChangeResult | undefined>(
    (requests) => withTransactionRetries(() => inTransaction(queuePool, (client) => apply(requests, client))),
    MAX_CHANGE_BATCH,
    observer,
  );
  /** The usual ends first, all else under locks. */
  async function changeAll(requests: readonly JobChangeRequest[]): Promise<(JobChangeResult | undefined)[]> {
    const finished = await finishAtOnce(requests);
    const others = requests.filter((_, index) => finished[index] === undefined);
    const results = (await changes.addAll(others)).values();
    return finished.map((result) => result ?? results.next().value);
  }
  return {
    change: async (endpointId, seq, next) => (await changeAll([{ endpointId, seq, next }]))[0],
    changeAll,
  };
}

function changesOf(writes: readonly PendingWrite[]): JobChange[] {
  return writes.map(({ change }) => change);
}

function keyArrays(writes: readonly PendingWrite[]): Record<string, string> {
  return columnArrays(
    writes.map(({ before }) => ({ endpoint_id: before.endpointId, seq: before.seq })),
    JOB_KEY_COLUMNS,
  );
}

function updatedRow({
  before,
  change: { job, output, error },
}: PendingWrite): Record<(typeof UPDATED_COLUMNS)[number], string | number | null> {
  return {
    ...(jobValues(job) as Record<string, string | number | null> & ReturnType<typeof jobValues>),
    output: output ?? null,
    has_output: output === undefined ? 0 : 1,
    error: error ?? null,
    has_error: error === undefined ? 0 : 1,
    check_earlier: mustCheckEarlier(before, job) ? 1 : 0,
  } as Record<(typeof UPDATED_COLUMNS)[number], string | number | null>;
}
