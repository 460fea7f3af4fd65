import type { Pool } from 'pg';
import { PairMap } from '../../support/pair-map.ts';
import { ChurnMap } from '../../support/churn-map.ts';
import type { JobRowChange } from '../job-row-changes.ts';
import type { Job, JobChange } from '../../domain/job-records.ts';
import type { JobChangeRequest, JobChangeResult } from '../job-store.ts';
import { toColumnArrays, unnest } from './column-arrays.ts';
import { queryQueuePool } from './queue-pool.ts';
import { isDivisionByZero, translateErrors } from './transactions.ts';

/** A server that hands out more than this without hearing of them remembers anew: what is not remembered is looked up. */
const MAX_CACHED_LEASES = 50_000;
/** So many characters of results are written by one statement: on their way they are in memory several times. */
const MAX_STATEMENT_CHARS = 8 * 1024 * 1024;

/** The leases of a take in one row, as this server knows it. */
export interface LeaseBatch {
  readonly endpointId: string;
  readonly id: string;
  /** How many of its jobs have not ended. */
  unfinished: number;
  /** Its jobs have leases of their own by now. */
  isSplit: boolean;
}

interface LeasedJob {
  job: Job;
  batch: LeaseBatch | undefined;
}

/**
 * The jobs that this server handed out, as it knows them. Another server may have changed them
 * since. Whether it has shows in the lease, and in the two things that change beside it: how far
 * the stream was read, and the time to live; of jobs in a bundle it shows in that the bundle is gone.
 */
export class LeasedJobs {
  readonly #jobs = new PairMap<string, number, LeasedJob>();
  readonly #bundles = new ChurnMap<string, LeaseBatch>();

  get(endpointId: string, seq: number): LeasedJob | undefined {
    return this.#jobs.get(endpointId, seq);
  }

  set(job: Job, bundle?: LeaseBatch): void {
    if (this.#jobs.size >= MAX_CACHED_LEASES) {
      this.#jobs.clear();
      this.#bundles.clear();
    }
    if (bundle !== undefined) this.#bundles.set(bundle.id, bundle);
    this.#jobs.set(job.endpointId, job.seq, { job, batch: bundle });
  }

  delete(endpointId: string, seq: number): void {
    this.#jobs.delete(endpointId, seq);
  }

  markSplit(ids: readonly string[]): void {
    for (const id of ids) {
      const bundle = this.#bundles.get(id);
      if (bundle !== undefined) bundle.isSplit = true;
      this.#bundles.delete(id);
    }
  }

  /** Its end is written. */
  markFinished({ endpointId, seq }: Job, bundle: LeaseBatch | undefined): void {
    this.#jobs.delete(endpointId, seq);
    if (bundle === undefined) return;
    bundle.unfinished -= 1;
    if (bundle.unfinished === 0) this.#bundles.delete(bundle.id);
  }
}

/** A plain end of an attempt, nothing else to be done with it. */
function isPlainResult(
  before: Job,
  { job, output, error, delivery, clearChunks, remove }: JobChange,
): boolean {
  const ended = job.status === 'COMPLETED' || job.status === 'FAILED';
  return (
    before.status === 'IN_PROGRESS' &&
    before.lease !== null &&
    ended &&
    output !== undefined &&
    error !== undefined &&
    delivery === undefined &&
    clearChunks === undefined &&
    remove === undefined
  );
}

interface FinishedJob extends JobRowChange {
  /** Which item of the batch it is. */
  index: number;
  bundle: LeaseBatch | undefined;
}

const FINISH_COUNT_COLUMNS = ['endpoint_id', 'completed', 'failed'];

/** From the parameter on: what was counted, and under which lane. */
const addFinishCountsSql = (
  from: number,
): string => `insert into job_counts (endpoint_id, lane, queued, running, completed, failed, retried)
    select endpoint_id, $${from + FINISH_COUNT_COLUMNS.length}, 0, -(completed + failed), completed, failed, 0 from ${unnest(FINISH_COUNT_COLUMNS, from, 'moved')}
    on conflict (endpoint_id, lane) do update set running = job_counts.running + excluded.running, completed = job_counts.completed + excluded.completed, failed = job_counts.failed + excluded.failed`;

/**
 * All ends of a batch in one statement, which is its own transaction. It holds only if every
 * job was as it is known here: else it divides by zero, nothing of it is kept, and the jobs are looked
 * at one by one. Jobs are locked before leases, as everywhere, and in the order of their keys.
 */
const FINISHED_COLUMNS = [
  'endpoint_id',
  'seq',
  'lease',
  'look_at',
  'ttl_at',
  'taken_at',
  'ended_at',
  'due_at',
  'output',
  'error',
];
const FINISH_LEASED_JOBS = `with written as (
    update jobs set status = case when given.error is null then 'COMPLETED' else 'FAILED' end, attempt = held.attempt, worker_id = held.worker_id, taken_at = given.taken_at,
      ended_at = given.ended_at, due_at = given.due_at, output = given.output, error = given.error
    from ${unnest(FINISHED_COLUMNS)}, job_leases as held
    where held.endpoint_id = given.endpoint_id and held.seq = given.seq and held.lease = given.lease and held.due_at = given.look_at
      and jobs.endpoint_id = given.endpoint_id and jobs.seq = given.seq and jobs.ttl_at = given.ttl_at returning held.ctid as at),
  ended as (delete from job_leases where ctid = any (array(select at from written)) returning 1),
  counted as (${addFinishCountsSql(FINISHED_COLUMNS.length + 1)})
  select 1 / (case when count(*) = $${FINISHED_COLUMNS.length + FINISH_COUNT_COLUMNS.length + 2}::bigint then 1 else 0 end) from ended`;

/**
 * The same for jobs that are held in bundles, which are as they were taken. Those bundles of which all have ended go; the others are held on to, so
 * that nobody opens them meanwhile. Endpoints and workers are few: each job says which of them by its place in their lists.
 */
const FINISHED_IN_BATCH_COLUMNS = ['endpoint', 'seq', 'worker', 'taken_at', 'ended_at', 'output', 'error'];
const NAMES = ['endpoints', 'workers'];
const LEASE_BATCH_COLUMNS = ['endpoint_id', 'id', 'empties'];
const [ENDPOINTS, WORKERS] = NAMES.map(
  (_, index) => `($${FINISHED_IN_BATCH_COLUMNS.length + index + 1}::text[])`,
);
const AFTER_NAMES = FINISHED_IN_BATCH_COLUMNS.length + NAMES.length;
const AFTER_COUNT_PARTITION = AFTER_NAMES + FINISH_COUNT_COLUMNS.length + 1;
const GIVEN_LEASE_BATCHES = unnest(LEASE_BATCH_COLUMNS, AFTER_COUNT_PARTITION + 1, 'bundle');
const SAME_LEASE_BATCH = 'job_bundles.endpoint_id = bundle.endpoint_id and job_bundles.id = bundle.id';
const FINISH_BATCHED_JOBS = `with written as (
    update jobs set status = case when given.error is null then 'COMPLETED' else 'FAILED' end, attempt = jobs.attempt + 1, worker_id = ${WORKERS}[given.worker], taken_at = given.taken_at,
      ended_at = given.ended_at, due_at = least(given.ended_at + jobs.retention, jobs.ttl_at), output = given.output, error = given.error
    from ${unnest(FINISHED_IN_BATCH_COLUMNS)} where jobs.endpoint_id = ${ENDPOINTS}[given.endpoint] and jobs.seq = given.seq and jobs.status = 'IN_QUEUE' returning 1),
  held as materialized (select 1 from ${GIVEN_LEASE_BATCHES}, job_bundles where ${SAME_LEASE_BATCH} and bundle.empties = 0 for update of job_bundles),
  emptied as (delete from job_bundles using ${GIVEN_LEASE_BATCHES} where ${SAME_LEASE_BATCH} and bundle.empties = 1 returning 1),
  counted as (${addFinishCountsSql(AFTER_NAMES + 1)})
  select 1 / (case when (select count(*) from written) = $${AFTER_COUNT_PARTITION + LEASE_BATCH_COLUMNS.length + 1}::bigint
    and (select count(*) from held) + (select count(*) from emptied) = $${AFTER_COUNT_PARTITION + LEASE_BATCH_COLUMNS.length + 2}::bigint then 1 else 0 end)`;

/** Names that are told by their place in a list, counted from 1. */
class NameIndex {
  readonly list: string[] = [];
  readonly #places = new Map<string, number>();

  indexOf(name: string): number {
    let place = this.#places.get(name);
    if (place === undefined) {
      place = this.list.push(name);
      this.#places.set(name, place);
    }
    return place;
  }
}

function byJobKey(ends: readonly FinishedJob[]): FinishedJob[] {
  return ends.toSorted(({ before: one }, { before: other }) =>
    one.endpointId === other.endpointId ? one.seq - other.seq : one.endpointId < other.endpointId ? -1 : 1,
  );
}

/** What is counted, as columns. */
function finishCounts(ends: readonly FinishedJob[]): string[] {
  const counts = new Map<string, { completed: number; failed: number }>();
  for (const {
    change: { job },
  } of ends) {
    let count = counts.get(job.endpointId);
    if (count === undefined) {
      count = { completed: 0, failed: 0 };
      counts.set(job.endpointId, count);
    }
    if (job.status === 'COMPLETED') count.completed += 1;
    else count.failed += 1;
  }
  return toColumnArrays(
    [...counts].map(([endpointId, { completed, failed }]) => [endpointId, completed, failed]),
    FINISH_COUNT_COLUMNS,
  );
}

/** False where a job was not as it is known here. */
async function write(
  lanes: Pool,
  statement: { name: string; text: string; values: unknown[] },
): Promise<boolean> {
  try {
    await translateErrors(queryQueuePool(lanes, statement));
    return true;
  } catch (error) {
    if (isDivisionByZero(error)) return false;
    throw error;
  }
}

function finishLeased(lanes: Pool, lane: string, ends: readonly FinishedJob[]): Promise<boolean> {
  const rows = byJobKey(ends).map(({ before, change: { job, output, error } }) => [
    job.endpointId,
    job.seq,
    before.lease,
    before.dueAt,
    before.ttlAt,
    job.takenAt,
    job.endedAt,
    job.dueAt,
    output ?? null,
    error ?? null,
  ]);
  return write(lanes, {
    name: 'end jobs',
    text: FINISH_LEASED_JOBS,
    values: [...toColumnArrays(rows, FINISHED_COLUMNS), ...finishCounts(ends), lane, ends.length],
  });
}

async function finishBatched(lanes: Pool, lane: string, ends: readonly FinishedJob[]): Promise<boolean> {
  const bundles = new Map<LeaseBatch, number>();
  for (const { bundle } of ends)
    if (bundle !== undefined) bundles.set(bundle, (bundles.get(bundle) ?? 0) + 1);
  const given = [...bundles].map(([{ endpointId, id, unfinished }, ended]) => [
    endpointId,
    id,
    unfinished === ended ? 1 : 0,
  ]);
  const [endpoints, workers] = [new NameIndex(), new NameIndex()];
  const rows = byJobKey(ends).map(({ change: { job, output, error } }) => [
    endpoints.indexOf(job.endpointId),
    job.seq,
    workers.indexOf(job.workerId ?? ''),
    job.takenAt,
    job.endedAt,
    output ?? null,
    error ?? null,
  ]);
  const values = [
    ...toColumnArrays(rows, FINISHED_IN_BATCH_COLUMNS),
    endpoints.list,
    workers.list,
    ...finishCounts(ends),
    lane,
    ...toColumnArrays(given, LEASE_BATCH_COLUMNS),
    ends.length,
    bundles.size,
  ];
  const done = await write(lanes, { name: 'end bundled jobs', text: FINISH_BATCHED_JOBS, values });
  // Somebody has opened one of them.
  if (!done) for (const bundle of bundles.keys()) bundle.isSplit = true;
  return done;
}

/**
 * Most changes end a job that this server handed out. Those need no look: they are written if
 * it is still held as it was. Answers, in the order of the items, what came of those that could be done so, or were before.
 */
export async function tryFinish(
  lanes: Pool,
  server: string,
  handedOut: LeasedJobs,
  items: readonly JobChangeRequest[],
  ended: WeakMap<JobChangeRequest, JobChangeResult>,
): Promise<(JobChangeResult | undefined)[]> {
  const [leased, bundled]: [FinishedJob[], FinishedJob[]] = [[], []];
  const written = items.map((item) => ended.get(item));
  const seen = new Set<Job>();
  items.forEach((item, index) => {
    const held = written[index] === undefined ? handedOut.get(item.endpointId, item.seq) : undefined;
    if (held === undefined || seen.has(held.job)) return;
    seen.add(held.job);
    const change = item.next(held.job);
    if (change === undefined || !isPlainResult(held.job, change)) return;
    if (held.batch?.isSplit === false) bundled.push({ before: held.job, change, index, bundle: held.batch });
    else leased.push({ before: held.job, change, index, bundle: undefined });
  });
  for (const [ends, end] of [
    [leased, finishLeased],
    [bundled, finishBatched],
  ] as const) {
    for (const some of splitByStatementSize(ends)) {
      if (!(await end(lanes, `${server} change`, some))) continue;
      for (const { before, change, index, bundle } of some) {
        handedOut.markFinished(before, bundle);
        written[index] = { before, after: change.job, changed: true };
      }
    }
  }
  return written;
}

/** As many as one statement carries. */
function splitByStatementSize(ends: readonly FinishedJob[]): FinishedJob[][] {
  const pieces: FinishedJob[][] = [];
  let size = Infinity;
  for (const end of ends) {
    const { output, error } = end.change;
    const more = (output?.length ?? 0) + (error?.length ?? 0);
    if (size + more > MAX_STATEMENT_CHARS) {
      pieces.push([]);
      size = 0;
    }
    size += more;
    pieces.at(-1)?.push(end);
  }
  return pieces;
}
