import type { Pool } from 'pg';
import { PairMap } from '../../support/pair-map.ts';
import { SteadyMap } from '../../support/steady-map.ts';
import type { Move } from '../job-moves.ts';
import type { Job, JobChange } from '../job-records.ts';
import type { AskedChange, Changed } from '../jobs.ts';
import { columnsOf, unnest } from './arrays.ts';
import { isDivisionByZero, translated } from './database.ts';
import { queryLane } from './lanes.ts';

/** A server that hands out more than this without hearing of them remembers anew: what is not remembered is looked up. */
const MOST_REMEMBERED = 50_000;
/** So many characters of results are written by one statement: on their way they are in memory several times. */
const LARGEST_STATEMENT = 8 * 1024 * 1024;

/** The leases of a take in one row, as this server knows it. */
export interface Bundle {
  readonly endpointId: string;
  readonly id: string;
  /** How many of its jobs have not ended. */
  left: number;
  /** Its jobs have leases of their own by now. */
  isOpen: boolean;
}

interface Held {
  job: Job;
  bundle: Bundle | undefined;
}

/**
 * The jobs that this server handed out, as it knows them. Another server may have changed them
 * since. Whether it has shows in the lease, and in the two things that change beside it: how far
 * the stream was read, and the time to live; of jobs in a bundle it shows in that the bundle is gone.
 */
export class HandedOut {
  readonly #jobs = new PairMap<string, number, Held>();
  readonly #bundles = new SteadyMap<string, Bundle>();

  get(endpointId: string, seq: number): Held | undefined {
    return this.#jobs.get(endpointId, seq);
  }

  set(job: Job, bundle?: Bundle): void {
    if (this.#jobs.size >= MOST_REMEMBERED) {
      this.#jobs.clear();
      this.#bundles.clear();
    }
    if (bundle !== undefined) this.#bundles.set(bundle.id, bundle);
    this.#jobs.set(job.endpointId, job.seq, { job, bundle });
  }

  delete(endpointId: string, seq: number): void {
    this.#jobs.delete(endpointId, seq);
  }

  opened(ids: readonly string[]): void {
    for (const id of ids) {
      const bundle = this.#bundles.get(id);
      if (bundle !== undefined) bundle.isOpen = true;
      this.#bundles.delete(id);
    }
  }

  /** Its end is written. */
  ended({ endpointId, seq }: Job, bundle: Bundle | undefined): void {
    this.#jobs.delete(endpointId, seq);
    if (bundle === undefined) return;
    bundle.left -= 1;
    if (bundle.left === 0) this.#bundles.delete(bundle.id);
  }
}

/** A plain end of an attempt, nothing else to be done with it. */
function isPlainEnd(before: Job, { job, output, error, delivery, clearChunks, remove }: JobChange): boolean {
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

interface End extends Move {
  /** Which item of the batch it is. */
  index: number;
  bundle: Bundle | undefined;
}

const COUNTED = ['endpoint_id', 'completed', 'failed'];

/** From the parameter on: what was counted, and under which lane. */
const addEnds = (
  from: number,
): string => `insert into job_counts (endpoint_id, lane, queued, running, completed, failed, retried)
    select endpoint_id, $${from + COUNTED.length}, 0, -(completed + failed), completed, failed, 0 from ${unnest(COUNTED, from, 'moved')}
    on conflict (endpoint_id, lane) do update set running = job_counts.running + excluded.running, completed = job_counts.completed + excluded.completed, failed = job_counts.failed + excluded.failed`;

/**
 * All ends of a batch in one statement, which is its own transaction. It holds only if every
 * job was as it is known here: else it divides by zero, nothing of it is kept, and the jobs are looked
 * at one by one. Jobs are locked before leases, as everywhere, and in the order of their keys.
 */
const ENDED = [
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
const END_JOBS = `with written as (
    update jobs set status = case when given.error is null then 'COMPLETED' else 'FAILED' end, attempt = held.attempt, worker_id = held.worker_id, taken_at = given.taken_at,
      ended_at = given.ended_at, due_at = given.due_at, output = given.output, error = given.error
    from ${unnest(ENDED)}, job_leases as held
    where held.endpoint_id = given.endpoint_id and held.seq = given.seq and held.lease = given.lease and held.due_at = given.look_at
      and jobs.endpoint_id = given.endpoint_id and jobs.seq = given.seq and jobs.ttl_at = given.ttl_at returning held.ctid as at),
  ended as (delete from job_leases where ctid = any (array(select at from written)) returning 1),
  counted as (${addEnds(ENDED.length + 1)})
  select 1 / (case when count(*) = $${ENDED.length + COUNTED.length + 2}::bigint then 1 else 0 end) from ended`;

/**
 * The same for jobs that are held in bundles, which are as they were taken. Those bundles of which all have ended go; the others are held on to, so
 * that nobody opens them meanwhile. Endpoints and workers are few: each job says which of them by its place in their lists.
 */
const ENDED_IN_BUNDLE = ['endpoint', 'seq', 'worker', 'taken_at', 'ended_at', 'output', 'error'];
const NAMES = ['endpoints', 'workers'];
const BUNDLES = ['endpoint_id', 'id', 'empties'];
const [ENDPOINTS, WORKERS] = NAMES.map((_, index) => `($${ENDED_IN_BUNDLE.length + index + 1}::text[])`);
const AFTER_NAMES = ENDED_IN_BUNDLE.length + NAMES.length;
const AFTER_LANE = AFTER_NAMES + COUNTED.length + 1;
const GIVEN_BUNDLES = unnest(BUNDLES, AFTER_LANE + 1, 'bundle');
const SAME_BUNDLE = 'job_bundles.endpoint_id = bundle.endpoint_id and job_bundles.id = bundle.id';
const END_BUNDLED = `with written as (
    update jobs set status = case when given.error is null then 'COMPLETED' else 'FAILED' end, attempt = jobs.attempt + 1, worker_id = ${WORKERS}[given.worker], taken_at = given.taken_at,
      ended_at = given.ended_at, due_at = least(given.ended_at + jobs.retention, jobs.ttl_at), output = given.output, error = given.error
    from ${unnest(ENDED_IN_BUNDLE)} where jobs.endpoint_id = ${ENDPOINTS}[given.endpoint] and jobs.seq = given.seq and jobs.status = 'IN_QUEUE' returning 1),
  held as materialized (select 1 from ${GIVEN_BUNDLES}, job_bundles where ${SAME_BUNDLE} and bundle.empties = 0 for update of job_bundles),
  emptied as (delete from job_bundles using ${GIVEN_BUNDLES} where ${SAME_BUNDLE} and bundle.empties = 1 returning 1),
  counted as (${addEnds(AFTER_NAMES + 1)})
  select 1 / (case when (select count(*) from written) = $${AFTER_LANE + BUNDLES.length + 1}::bigint
    and (select count(*) from held) + (select count(*) from emptied) = $${AFTER_LANE + BUNDLES.length + 2}::bigint then 1 else 0 end)`;

/** Names that are told by their place in a list, counted from 1. */
class Names {
  readonly list: string[] = [];
  readonly #places = new Map<string, number>();

  placeOf(name: string): number {
    let place = this.#places.get(name);
    if (place === undefined) {
      place = this.list.push(name);
      this.#places.set(name, place);
    }
    return place;
  }
}

function inOrder(ends: readonly End[]): End[] {
  return ends.toSorted(({ before: one }, { before: other }) =>
    one.endpointId === other.endpointId ? one.seq - other.seq : one.endpointId < other.endpointId ? -1 : 1,
  );
}

/** What is counted, as columns. */
function counted(ends: readonly End[]): string[] {
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
  return columnsOf(
    [...counts].map(([endpointId, { completed, failed }]) => [endpointId, completed, failed]),
    COUNTED,
  );
}

/** False where a job was not as it is known here. */
async function write(
  lanes: Pool,
  statement: { name: string; text: string; values: unknown[] },
): Promise<boolean> {
  try {
    await translated(queryLane(lanes, statement));
    return true;
  } catch (error) {
    if (isDivisionByZero(error)) return false;
    throw error;
  }
}

function endLeased(lanes: Pool, lane: string, ends: readonly End[]): Promise<boolean> {
  const rows = inOrder(ends).map(({ before, change: { job, output, error } }) => [
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
    text: END_JOBS,
    values: [...columnsOf(rows, ENDED), ...counted(ends), lane, ends.length],
  });
}

async function endBundled(lanes: Pool, lane: string, ends: readonly End[]): Promise<boolean> {
  const bundles = new Map<Bundle, number>();
  for (const { bundle } of ends)
    if (bundle !== undefined) bundles.set(bundle, (bundles.get(bundle) ?? 0) + 1);
  const given = [...bundles].map(([{ endpointId, id, left }, ended]) => [
    endpointId,
    id,
    left === ended ? 1 : 0,
  ]);
  const [endpoints, workers] = [new Names(), new Names()];
  const rows = inOrder(ends).map(({ change: { job, output, error } }) => [
    endpoints.placeOf(job.endpointId),
    job.seq,
    workers.placeOf(job.workerId ?? ''),
    job.takenAt,
    job.endedAt,
    output ?? null,
    error ?? null,
  ]);
  const values = [
    ...columnsOf(rows, ENDED_IN_BUNDLE),
    endpoints.list,
    workers.list,
    ...counted(ends),
    lane,
    ...columnsOf(given, BUNDLES),
    ends.length,
    bundles.size,
  ];
  const done = await write(lanes, { name: 'end bundled jobs', text: END_BUNDLED, values });
  // Somebody has opened one of them.
  if (!done) for (const bundle of bundles.keys()) bundle.isOpen = true;
  return done;
}

/**
 * Most changes end a job that this server handed out. Those need no look: they are written if
 * it is still held as it was. Answers, in the order of the items, what came of those that could be done so, or were before.
 */
export async function tryEnds(
  lanes: Pool,
  server: string,
  handedOut: HandedOut,
  items: readonly AskedChange[],
  ended: WeakMap<AskedChange, Changed>,
): Promise<(Changed | undefined)[]> {
  const [leased, bundled]: [End[], End[]] = [[], []];
  const written = items.map((item) => ended.get(item));
  const seen = new Set<Job>();
  items.forEach((item, index) => {
    const held = written[index] === undefined ? handedOut.get(item.endpointId, item.seq) : undefined;
    if (held === undefined || seen.has(held.job)) return;
    seen.add(held.job);
    const change = item.next(held.job);
    if (change === undefined || !isPlainEnd(held.job, change)) return;
    if (held.bundle?.isOpen === false) bundled.push({ before: held.job, change, index, bundle: held.bundle });
    else leased.push({ before: held.job, change, index, bundle: undefined });
  });
  for (const [ends, end] of [
    [leased, endLeased],
    [bundled, endBundled],
  ] as const) {
    for (const some of inPieces(ends)) {
      if (!(await end(lanes, `${server} change`, some))) continue;
      for (const { before, change, index, bundle } of some) {
        handedOut.ended(before, bundle);
        written[index] = { before, after: change.job, changed: true };
      }
    }
  }
  return written;
}

/** As many as one statement carries. */
function inPieces(ends: readonly End[]): End[][] {
  const pieces: End[][] = [];
  let size = Infinity;
  for (const end of ends) {
    const { output, error } = end.change;
    const more = (output?.length ?? 0) + (error?.length ?? 0);
    if (size + more > LARGEST_STATEMENT) {
      pieces.push([]);
      size = 0;
    }
    size += more;
    pieces.at(-1)?.push(end);
  }
  return pieces;
}
