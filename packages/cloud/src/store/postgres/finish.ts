import type { Pool } from 'pg';
import { PairMap } from '../../support/pair-map.ts';
import type { Move } from '../job-moves.ts';
import type { Job } from '../job-records.ts';
import type { Changed } from '../jobs.ts';
import { columnsOf, unnest } from './arrays.ts';
import type { Transition } from './changes.ts';
import { TryAgain, translated } from './database.ts';

/** A server that hands out more than this without hearing of them remembers anew: what is not remembered is looked up. */
const MOST_REMEMBERED = 50_000;
const DIVISION_BY_ZERO = '22012';

/**
 * The jobs that this server handed out, as it knows them. Another server may have changed them
 * since. Whether it has shows in the lease, and in the two things that change beside it: how far
 * the stream was read, and the time to live.
 */
export class HandedOut {
  readonly #jobs = new PairMap<string, number, Job>();

  get(endpointId: string, seq: number): Job | undefined {
    return this.#jobs.get(endpointId, seq);
  }

  set(job: Job): void {
    if (this.#jobs.size >= MOST_REMEMBERED) this.#jobs.clear();
    this.#jobs.set(job.endpointId, job.seq, job);
  }

  delete(endpointId: string, seq: number): void {
    this.#jobs.delete(endpointId, seq);
  }
}

/** A plain end of an attempt, nothing else to be done with it. */
function isPlainEnd({ before, change: { job, output, error, delivery, clearChunks, remove } }: Move): boolean {
  const ended = job.status === 'COMPLETED' || job.status === 'FAILED';
  return before.status === 'IN_PROGRESS' && before.lease !== null && ended && output !== undefined && error !== undefined && delivery === undefined && clearChunks === undefined && remove === undefined;
}

const ENDED = ['endpoint_id', 'seq', 'lease', 'look_at', 'ttl_at', 'taken_at', 'ended_at', 'due_at', 'output', 'error'];
const COUNTED = ['endpoint_id', 'completed', 'failed'];

/**
 * All ends of a batch in one statement, which is its own transaction. It holds only if every
 * job was as it is known here: else it divides by zero, nothing of it is kept, and the jobs are looked
 * at one by one. Jobs are locked before leases, as everywhere, and in the order of their keys.
 */
const END_JOBS = `with written as (
    update jobs set status = case when given.error is null then 'COMPLETED' else 'FAILED' end, attempt = held.attempt, worker_id = held.worker_id, taken_at = given.taken_at,
      ended_at = given.ended_at, due_at = given.due_at, output = given.output, error = given.error
    from ${unnest(ENDED)}, job_leases as held
    where held.endpoint_id = given.endpoint_id and held.seq = given.seq and held.lease = given.lease and held.due_at = given.look_at
      and jobs.endpoint_id = given.endpoint_id and jobs.seq = given.seq and jobs.ttl_at = given.ttl_at returning held.ctid as at),
  ended as (delete from job_leases where ctid = any (array(select at from written)) returning 1),
  counted as (insert into job_counts (endpoint_id, lane, queued, running, completed, failed, retried)
    select endpoint_id, $${ENDED.length + COUNTED.length + 1}, 0, -(completed + failed), completed, failed, 0 from ${unnest(COUNTED, ENDED.length + 1, 'moved')}
    on conflict (endpoint_id, lane) do update set running = job_counts.running + excluded.running, completed = job_counts.completed + excluded.completed, failed = job_counts.failed + excluded.failed)
  select 1 / (case when count(*) = $${ENDED.length + COUNTED.length + 2}::bigint then 1 else 0 end) from ended`;

async function endJobs(lanes: Pool, server: string, endings: readonly Move[]): Promise<void> {
  const rows = endings
    .toSorted(({ before: one }, { before: other }) => (one.endpointId === other.endpointId ? one.seq - other.seq : one.endpointId < other.endpointId ? -1 : 1))
    .map(({ before, change: { job, output, error } }) => [job.endpointId, job.seq, before.lease, before.dueAt, before.ttlAt, job.takenAt, job.endedAt, job.dueAt, output ?? null, error ?? null]);
  const counts = new Map<string, { completed: number; failed: number }>();
  for (const { change: { job } } of endings) {
    const count = counts.get(job.endpointId) ?? { completed: 0, failed: 0 };
    if (job.status === 'COMPLETED') count.completed += 1;
    else count.failed += 1;
    counts.set(job.endpointId, count);
  }
  const moved = [...counts].map(([endpointId, { completed, failed }]) => [endpointId, completed, failed]);
  try {
    await translated(lanes.query({ name: 'end jobs', text: END_JOBS, values: [...columnsOf(rows, ENDED.length), ...columnsOf(moved, COUNTED.length), `${server} change`, endings.length] }));
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === DIVISION_BY_ZERO) throw new TryAgain('a job moved on before its end was written');
    throw error;
  }
}

/**
 * Most changes end a job that this server handed out. Those need no look: they are written if
 * the lease is still the same. Answers which could be done so.
 */
export async function tryEnds(lanes: Pool, server: string, handedOut: HandedOut, items: Transition[]): Promise<Map<Transition, Changed>> {
  const ends = new Map<Transition, Move>();
  const seen = new Set<Job>();
  for (const item of items) {
    const before = handedOut.get(item.endpointId, item.seq);
    if (before === undefined || seen.has(before)) continue;
    seen.add(before);
    const change = item.next(before);
    if (change !== undefined && isPlainEnd({ before, change })) ends.set(item, { before, change });
  }
  if (ends.size === 0) return new Map();
  try {
    await endJobs(lanes, server, [...ends.values()]);
  } catch (error) {
    if (error instanceof TryAgain) return new Map();
    throw error;
  }
  for (const { before } of ends.values()) handedOut.delete(before.endpointId, before.seq);
  return new Map([...ends].map(([item, { before, change }]) => [item, { before, after: change.job, changed: true }]));
}
