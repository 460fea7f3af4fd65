import type { PoolClient } from 'pg';
import { affectedRows } from '../job-row-changes.ts';
import type { JobRowChange, AffectedRows } from '../job-row-changes.ts';
import type { Delivery, Job, JobChange, Payloads } from '../../domain/job-records.ts';
import { UPDATABLE_COLUMNS, updatableValues, deliveryValues, JOBS_WITH_LEASES } from '../tables/job-rows.ts';
import { countDeltas } from '../job-store.ts';
import type { JobChangeRequest, JobChangeResult, CountDeltas } from '../job-store.ts';
import type { Row, Value } from '../sql.ts';
import { toColumnArrays, unnest } from './column-arrays.ts';
import { JOB_CHANGE_SELECT, jobFromRead } from './lease-batches.ts';
import { addCountsSql } from './job-counts.ts';
import { SAVE_DELIVERY } from './job-deliveries.ts';
import {
  insertQueueBatchesSql,
  REWRITE_PARTIAL_BATCHES,
  DELETE_EMPTIED_BATCHES,
  QUEUE_BATCH_COLUMNS,
  singleJobBatch,
  queueBatchValues,
  QUEUE_POSITION_COLUMNS,
  queuePositionValues,
} from './queue-batches.ts';
import { RetryTransaction } from './transactions.ts';

const COUNT_COLUMNS = ['endpoint_id', 'queued', 'running', 'completed', 'failed', 'retried'];

export const JOB_KEY_COLUMNS = ['endpoint_id', 'seq'];
/** In the order of their keys, so that two servers never wait for each other. */
const LOCK_JOBS = `select 1 from jobs as job where (job.endpoint_id, job.seq) in (select * from ${unnest(JOB_KEY_COLUMNS)}) order by job.endpoint_id, job.seq for update`;
/** A statement of its own: whatever the lock waited for shows only in the next one. */
const SELECT_LOCKED_JOBS = `select ${JOB_CHANGE_SELECT} from ${JOBS_WITH_LEASES} where (job.endpoint_id, job.seq) in (select * from ${unnest(JOB_KEY_COLUMNS)})`;

/** A change that is to be written, and in whose place the job waits. */
interface BatchedJobChange extends JobRowChange {
  place: number | null;
}

/** Locks the jobs, then asks each rule. */
export async function applyChanges(
  client: PoolClient,
  server: string,
  items: readonly JobChangeRequest[],
): Promise<(JobChangeResult | undefined)[]> {
  const keys = toColumnArrays(
    items.map(({ endpointId, seq }) => [endpointId, seq]),
    JOB_KEY_COLUMNS,
  );
  await client.query({ name: 'lock jobs', text: LOCK_JOBS, values: keys });
  const { rows } = await client.query<Value[]>({
    name: 'locked jobs',
    text: SELECT_LOCKED_JOBS,
    values: keys,
    rowMode: 'array',
  });
  const jobs = new Map(
    rows.map(jobFromRead).map((seen) => [jobKey(seen.job.endpointId, seen.job.seq), seen]),
  );
  const moves: BatchedJobChange[] = [];
  const results = items.map((item): JobChangeResult | undefined => {
    const key = jobKey(item.endpointId, item.seq);
    const seen = jobs.get(key);
    if (seen === undefined) return undefined;
    const { job: before, place } = seen;
    const change = item.next(before);
    if (change === undefined) return { before, after: before, changed: false };
    moves.push({ before, change, place });
    // A later item of the same batch sees what this one did.
    if (change.remove === true) jobs.delete(key);
    else jobs.set(key, { job: change.job, place });
    return { before, after: change.job, changed: true };
  });
  await writeChanges(client, `${server} change`, moves);
  return results;
}

async function writeChanges(client: PoolClient, lane: string, moves: BatchedJobChange[]): Promise<void> {
  if (moves.length === 0) return;
  for (const { before, change } of moves)
    if (change.delivery !== undefined) await writeDelivery(client, before, change);
  const cleared = moves.filter(({ change }) => change.remove === true || change.clearChunks === true);
  if (cleared.length > 0)
    await client.query(
      `delete from job_chunks where (endpoint_id, seq) in (select * from ${unnest(JOB_KEY_COLUMNS)})`,
      toColumnArrays(
        cleared.map(({ before }) => [before.endpointId, before.seq]),
        JOB_KEY_COLUMNS,
      ),
    );
  const merged = lastOfEach(moves).map((move) => ({
    ...move,
    rows:
      move.change.remove === true ? rowsOfRemovedJob(move.before) : affectedRows(move.before, move.change),
  }));
  const some = (which: (rows: AffectedRows) => boolean): typeof merged =>
    merged.filter(({ rows }) => which(rows));

  // The lock is on the job's own row. A take that was committed meanwhile shows in that a place or a lease is not as it was seen: then all is looked at again.
  // A job that waits on gets a place of its own: what the place says of a job is what a take hands out.
  const staying = merged.filter(
    ({ before, change }) =>
      change.remove !== true && before.status === 'IN_QUEUE' && change.job.status === 'IN_QUEUE',
  );
  const leaving = [...some(({ waiting }) => waiting === 'leaves'), ...staying];
  if (leaving.length > 0)
    await removeFromQueueBatches(
      client,
      toColumnArrays(
        leaving.map(({ before, place }) => queuePositionValues(before, place)),
        QUEUE_POSITION_COLUMNS,
      ),
      leaving.length,
    );
  const renewed = some(({ lease }) => lease === 'renewed');
  if (renewed.length > 0)
    await expectRowCount(
      client,
      renewed.length,
      RENEW_LEASES,
      toColumnArrays(
        renewed.map(({ before, change: { job } }) => [...leaseKeyValues(before), job.dueAt]),
        RENEWED_LEASE_COLUMNS,
      ),
    );
  const ended = some(({ lease }) => lease === 'ends');
  if (ended.length > 0)
    await expectRowCount(
      client,
      ended.length,
      END_LEASES,
      toColumnArrays(
        ended.map(({ before }) => leaseKeyValues(before)),
        LEASE_KEY_COLUMNS,
      ),
    );
  const entering = [...some(({ waiting }) => waiting === 'enters'), ...staying];
  if (entering.length > 0)
    await client.query({
      ...ENTER_QUEUE,
      values: toColumnArrays(
        entering.map(({ change: { job } }) => queueBatchValues(singleJobBatch({ job }))),
        QUEUE_BATCH_COLUMNS,
      ),
    });

  const gone = merged.filter(({ change }) => change.remove === true);
  if (gone.length > 0)
    await client.query(
      `delete from jobs where (endpoint_id, seq) in (select * from ${unnest(JOB_KEY_COLUMNS)})`,
      toColumnArrays(
        gone.map(({ before }) => [before.endpointId, before.seq]),
        JOB_KEY_COLUMNS,
      ),
    );
  const written = merged.filter(({ change, rows }) => change.remove !== true && rows.row);
  const values = toColumnArrays(
    written.map(({ change: { job, output, error }, rows }) => [
      job.endpointId,
      job.seq,
      ...updatableValues(job),
      output ?? null,
      output === undefined ? 0 : 1,
      error ?? null,
      error === undefined ? 0 : 1,
      rows.recheck ? 1 : 0,
    ]),
    UPDATED_COLUMNS,
  );
  const counts = toColumnArrays(
    countTotals(moves).map(([endpointId, sum]) => [
      endpointId,
      sum.queued,
      sum.running,
      sum.completed,
      sum.failed,
      sum.retried,
    ]),
    COUNT_COLUMNS,
  );
  const looks = written.some(({ rows }) => rows.recheck);
  await client.query({
    name: looks ? 'update jobs and looks' : 'update jobs',
    text: updateJobs(looks),
    values: [...values, ...counts, lane],
  });
}

const ENTER_QUEUE = { name: 'enter queue', text: insertQueueBatchesSql() };

async function removeFromQueueBatches(client: PoolClient, values: string[], count: number): Promise<void> {
  let left = 0;
  for (const statement of [DELETE_EMPTIED_BATCHES, REWRITE_PARTIAL_BATCHES]) {
    if (left === count) return;
    const { rows } = await client.query<{ left: number }>({ ...statement, values });
    for (const row of rows) left += row.left;
  }
  if (left !== count) throw new RetryTransaction('a job moved on while it was changed');
}

const LEASE_KEY_COLUMNS = [...JOB_KEY_COLUMNS, 'lease', 'due_at'];
const RENEWED_LEASE_COLUMNS = [...LEASE_KEY_COLUMNS, 'look_at'];
const SAME_LEASE =
  'lease.endpoint_id = given.endpoint_id and lease.seq = given.seq and lease.lease = given.lease and lease.due_at = given.due_at';
const RENEW_LEASES = {
  name: 'renew leases',
  text: `update job_leases as lease set due_at = given.look_at from ${unnest(RENEWED_LEASE_COLUMNS)} where ${SAME_LEASE}`,
};
const END_LEASES = {
  name: 'end leases',
  text: `delete from job_leases as lease using ${unnest(LEASE_KEY_COLUMNS)} where ${SAME_LEASE}`,
};

function leaseKeyValues(job: Job): Value[] {
  return [job.endpointId, job.seq, job.lease, job.dueAt];
}

async function expectRowCount(
  client: PoolClient,
  count: number,
  statement: { name: string; text: string },
  values: unknown[],
): Promise<void> {
  const { rowCount } = await client.query({ ...statement, values });
  if (rowCount !== count) throw new RetryTransaction('a job moved on while it was changed');
}

function rowsOfRemovedJob(before: Job): AffectedRows {
  return {
    waiting: before.status === 'IN_QUEUE' ? 'leaves' : undefined,
    lease: before.status === 'IN_PROGRESS' ? 'ends' : undefined,
    row: false,
    recheck: false,
  };
}

const UPDATED_COLUMNS = [
  ...JOB_KEY_COLUMNS,
  ...UPDATABLE_COLUMNS,
  'output',
  'has_output',
  'error',
  'has_error',
  'looks',
];
/** Where no row has to be looked at earlier, the column with the index is not named, and the index is left alone. */
const updateJobs = (looks: boolean): string => `with given as (select * from ${unnest(UPDATED_COLUMNS)}),
  written as (update jobs set place = null, ${UPDATABLE_COLUMNS.map((column) => `${column} = given.${column}`).join(', ')},
      output = case when given.has_output = 1 then given.output else jobs.output end, error = case when given.has_error = 1 then given.error else jobs.error end
      ${looks ? ', look_at = case when given.looks = 1 then least(jobs.look_at, given.ttl_at) else jobs.look_at end' : ''}
    from given where jobs.endpoint_id = given.endpoint_id and jobs.seq = given.seq)
  ${addCountsSql(`select endpoint_id, $${UPDATED_COLUMNS.length + COUNT_COLUMNS.length + 1}, ${COUNT_COLUMNS.slice(1).join(', ')} from ${unnest(COUNT_COLUMNS, UPDATED_COLUMNS.length + 1, 'moved')}`)}`;

async function writeDelivery(client: PoolClient, before: Job, change: JobChange): Promise<void> {
  const {
    rows: [row],
  } = await client.query<Row>('select request, output, error from jobs where endpoint_id = $1 and seq = $2', [
    before.endpointId,
    before.seq,
  ]);
  const kept = payloadsFrom(row ?? {});
  const payloads: Payloads = {
    request: kept.request,
    output: change.output === undefined ? kept.output : change.output,
    error: change.error === undefined ? kept.error : change.error,
  };
  const delivery: Delivery | undefined = change.delivery?.(payloads);
  if (delivery !== undefined) await client.query(SAVE_DELIVERY, deliveryValues(delivery));
}

/** Where one batch changes a job twice, only the last version is written, with the payloads of both. */
function lastOfEach(moves: BatchedJobChange[]): BatchedJobChange[] {
  const last = new Map<string, BatchedJobChange>();
  for (const move of moves) {
    const key = jobKey(move.before.endpointId, move.before.seq);
    const earlier = last.get(key);
    last.delete(key);
    last.set(
      key,
      earlier === undefined ? move : { ...earlier, change: { ...earlier.change, ...move.change } },
    );
  }
  return [...last.values()];
}

function countTotals(moves: JobRowChange[]): [string, CountDeltas][] {
  const totals = new Map<string, CountDeltas>();
  for (const { before, change } of moves) {
    const gone =
      change.remove === true && (change.job.status === 'IN_QUEUE' || change.job.status === 'IN_PROGRESS');
    const move = countDeltas(before, gone ? undefined : change.job);
    const sum = totals.get(before.endpointId) ?? {
      queued: 0,
      running: 0,
      completed: 0,
      failed: 0,
      retried: 0,
    };
    for (const name of Object.keys(move) as (keyof CountDeltas)[]) sum[name] += move[name];
    totals.set(before.endpointId, sum);
  }
  return [...totals];
}

export function jobKey(endpointId: string, seq: number): string {
  return `${endpointId} ${seq}`;
}

function payloadsFrom(row: Row): Payloads {
  return {
    request: row['request'] as string,
    output: (row['output'] ?? null) as string | null,
    error: (row['error'] ?? null) as string | null,
  };
}
