import type { Pool, PoolClient } from 'pg';
import { MOST_LOOKS, rowMoves } from '../job-moves.ts';
import type { Move, RowMoves } from '../job-moves.ts';
import { isOver } from '../job-records.ts';
import type { Delivery, Job, JobChange, Payloads, WholeJob } from '../job-records.ts';
import {
  AFTER_JOB, CHANGING_COLUMNS, changingValues, DELIVERY_COLUMNS, deliveryFromRow, deliveryValues, INSERTED_COLUMNS, insertedValues, JOB, jobFromValues, JOBS_AND_LEASES,
  listed, nextLook, PAYLOAD_BYTES, PAYLOADS, WAITING_COLUMNS, waitingValues,
} from '../job-rows.ts';
import { countMoves, endAfter } from '../jobs.ts';
import type { Changed, CountMoves, Idempotency, JobStore, StreamEnd, Submitted } from '../jobs.ts';
import type { Row, Value } from '../sql.ts';
import { workerFromRow } from '../worker-rows.ts';
import { columnsOf, unnest } from './arrays.ts';
import { Batch } from './batch.ts';
import { retried, TryAgain, translated, withClient } from './database.ts';
import { ADD_COUNTS } from './counts.ts';
import { endJobs, HandedOut, isPlainEnd } from './finish.ts';
import { takeJobs } from './take.ts';

/** Larger batches gain nothing and hold others up. */
const LARGEST_BATCH = 500;

interface Submission {
  whole: WholeJob;
  idempotency: Idempotency | undefined;
}

interface Transition {
  endpointId: string;
  seq: number;
  next: (job: Job) => JobChange | undefined;
}

const COUNTED = ['endpoint_id', 'queued', 'running', 'completed', 'failed', 'retried'];

const INSERT_JOBS = `with added as (
    insert into jobs (${INSERTED_COLUMNS.join(', ')}) select * from ${unnest(INSERTED_COLUMNS)} on conflict do nothing returning ${WAITING_COLUMNS.join(', ')}
  ), placed as (insert into job_waiting (${WAITING_COLUMNS.join(', ')}) select * from added),
  counted as (${ADD_COUNTS(`select endpoint_id, $${INSERTED_COLUMNS.length + 1} || ' submit', count(*), 0, 0, 0, 0 from added group by endpoint_id`)})
  select endpoint_id, seq from added`;

/** The queue on PostgreSQL. Each kind of call has a lane of its own, with one commit on its way at a time. */
export function postgresJobs(pool: Pool, lanes: Pool, server: string): JobStore {
  const query = async (text: string, values: unknown[]): Promise<Row[]> => (await translated(pool.query<Row>(text, values))).rows;
  /** Rows that begin with a job, as arrays. */
  const queryJobs = async (text: string, values: unknown[]): Promise<Value[][]> => (await translated(pool.query<Value[]>({ text, values, rowMode: 'array' }))).rows;

  const insert = async (items: Submission[]): Promise<Submitted[]> => {
    const values = items.map(({ whole: { job, payloads }, idempotency }) => insertedValues(job, idempotency, payloads.request));
    const { rows: added } = await translated(lanes.query<[string, number]>({ name: 'insert jobs', text: INSERT_JOBS, values: [...columnsOf(values, INSERTED_COLUMNS.length), server], rowMode: 'array' }));
    const keys = new Set(added.map(([endpointId, seq]) => keyOf(endpointId, seq)));
    return Promise.all(items.map(async (item) => (keys.has(keyOf(item.whole.job.endpointId, item.whole.job.seq)) ? submitted(item) : existing(item))));
  };
  const submits = new Batch(insert, LARGEST_BATCH);

  const submitted = ({ whole: { job }, idempotency }: Submission): Submitted => ({ job, created: true, bodyHash: idempotency?.bodyHash ?? null });
  /** It was not added: the idempotency key is taken, or another server counted to the same number at the same time. */
  const existing = async (item: Submission): Promise<Submitted> => {
    const { whole: { job }, idempotency } = item;
    const [values] = idempotency === undefined ? [] : await queryJobs(`select ${JOB}, job.body_hash from ${JOBS_AND_LEASES} where job.endpoint_id = $1 and job.idempotency_key = $2`, [job.endpointId, idempotency.key]);
    if (values !== undefined) {
      const holder = jobFromValues(values);
      if (isOver(holder, job.createdAt)) {
        await changes.add({ endpointId: holder.endpointId, seq: holder.seq, next: (current) => (isOver(current, job.createdAt) ? { job: current, remove: true } : undefined) });
        const [added] = await insert([item]);
        return added as Submitted;
      }
      if (holder.id !== job.id) return { job: holder, created: false, bodyHash: values[AFTER_JOB] as string };
    }
    const [holder] = await query('select id from jobs where endpoint_id = $1 and seq = $2', [job.endpointId, job.seq]);
    return { job, created: holder?.['id'] === job.id, bodyHash: null };
  };

  const handedOut = new HandedOut();
  const changes = new Batch<Transition, Changed | undefined>(async (items) => {
    const ends = await tryEnds(lanes, server, handedOut, items);
    const rest = items.filter((item) => !ends.has(item));
    const changed = rest.length === 0 ? [] : await retried(() => inTransaction(pool, (client) => applyChanges(client, server, rest)));
    for (const done of changed) {
      if (done?.after.status === 'IN_PROGRESS') handedOut.set(done.after);
      else if (done !== undefined) handedOut.delete(done.after.endpointId, done.after.seq);
    }
    const results = new Map<Transition, Changed | undefined>([...ends, ...rest.map((item, index) => [item, changed[index]] as const)]);
    return items.map((item) => results.get(item));
  }, LARGEST_BATCH);

  return {
    meetInOneTurn: false,

    submit: (whole, idempotency) => submits.add({ whole, idempotency }),

    take: async (endpointId, terms) => {
      const taken = await takeJobs(lanes, server, endpointId, terms);
      for (const { job } of taken) handedOut.set(job);
      return taken;
    },

    change: (endpointId, seq, next) => changes.add({ endpointId, seq, next }),

    changeAll: (endpointId, asked) => changes.addAll(asked.map(({ seq, next }) => ({ endpointId, seq, next }))),

    find: async (endpointId, seq) => {
      const [values] = await queryJobs(`select ${JOB}, ${PAYLOADS} from ${JOBS_AND_LEASES} where job.endpoint_id = $1 and job.seq = $2`, [endpointId, seq]);
      return values === undefined ? undefined : wholeFrom(values);
    },

    appendChunks: (endpointId, seq, next) =>
      inTransaction(pool, async (client) => {
        // Two servers that hear the same worker come one after the other here.
        await client.query('select 1 from jobs where endpoint_id = $1 and seq = $2 for update', [endpointId, seq]);
        const { rows: [values] } = await client.query<Value[]>({
          text: `select ${JOB}, last.number, last.worker_number from ${JOBS_AND_LEASES}
            left join lateral (select number, worker_number from job_chunks where endpoint_id = $1 and seq = $2 order by number desc limit 1) as last on true where job.endpoint_id = $1 and job.seq = $2`,
          values: [endpointId, seq],
          rowMode: 'array',
        });
        if (values === undefined) return undefined;
        const end: StreamEnd = { number: Number(values[AFTER_JOB] ?? 0), workerNumber: Number(values[AFTER_JOB + 1] ?? 0) };
        const chunks = next(jobFromValues(values), end);
        if (chunks === undefined) return undefined;
        if (chunks.length > 0) {
          await client.query(
            'insert into job_chunks (endpoint_id, seq, number, worker_number, chunk) select $1, $2, $5::int + given.place, given.worker_number, given.chunk from unnest($3::text[], $4::int[]) with ordinality as given (chunk, worker_number, place)',
            [endpointId, seq, chunks.map(({ text }) => text), chunks.map(({ workerNumber }) => workerNumber), end.number],
          );
        }
        return endAfter(end, chunks);
      }),

    chunks: async (endpointId, seq, after, bytes) => {
      const rows = await query(
        `select number, chunk from (select number, chunk, sum(length(chunk)) over (order by number) - length(chunk) as before from job_chunks where endpoint_id = $1 and seq = $2 and number > $3) as sized
          where before = 0 or before + length(chunk) <= $4 order by number`,
        [endpointId, seq, after, bytes],
      );
      return rows.map((row) => ({ number: row['number'] as number, text: row['chunk'] as string }));
    },

    due: async (now, limit) => {
      const due = (await queryJobs(`select ${JOB} from job_leases as lease join jobs as job on job.endpoint_id = lease.endpoint_id and job.seq = lease.seq where lease.due_at <= $1 order by lease.due_at limit $2`, [now, limit])).map(jobFromValues);
      for (let looks = 0; looks < MOST_LOOKS && due.length < limit; looks += 1) {
        const found = (await queryJobs(`select ${JOB} from ${JOBS_AND_LEASES} where job.look_at <= $1 order by job.look_at limit $2`, [now, limit])).map(jobFromValues);
        const later = found.filter((job) => job.status === 'IN_PROGRESS' || job.dueAt > now);
        due.push(...found.filter((job) => !later.includes(job)));
        if (later.length > 0) {
          // What another server just changes is left to it.
          await query(
            `update jobs set look_at = given.look_at from (select locked.* from ${unnest([...KEY, 'look_at'])}, lateral (select given.*, 1 as found from jobs where endpoint_id = given.endpoint_id and seq = given.seq for update skip locked) as locked) as given
              where jobs.endpoint_id = given.endpoint_id and jobs.seq = given.seq`,
            columnsOf(later.map((job) => [job.endpointId, job.seq, Math.max(nextLook(job, now), now + 1)]), 3),
          );
        }
        if (later.length === 0 || found.length < limit) break;
      }
      return due;
    },

    purge: (endpointId) =>
      retried(async () => {
        const [row] = await query(
          // Locked in the order in which changes lock them too, so that neither waits for the other. Whoever was taken meanwhile has no place any more.
          `with locked as materialized (select job.seq, place.low_priority, place.account_id, place.position from job_waiting as place join jobs as job on job.endpoint_id = place.endpoint_id and job.seq = place.seq
              where place.endpoint_id = $1 order by job.seq for update of job),
            gone as (delete from job_waiting using locked where job_waiting.endpoint_id = $1 and job_waiting.low_priority = locked.low_priority and job_waiting.account_id = locked.account_id
              and job_waiting.position = locked.position and job_waiting.seq = locked.seq returning job_waiting.seq),
            removed as (delete from jobs using gone where jobs.endpoint_id = $1 and jobs.seq = gone.seq),
            chunks as (delete from job_chunks where endpoint_id = $1 and seq in (select seq from gone)),
            counted as (${ADD_COUNTS(`select $1, $2 || ' purge', -count(*), 0, 0, 0, 0 from gone`)})
            select count(*) as removed from gone`,
          [endpointId, server],
        );
        return Number(row?.['removed']);
      }),

    list: async (endpointId, { status, before = Number.MAX_SAFE_INTEGER, rows, now }) => {
      const [waiting] = status === 'IN_QUEUE' ? await query('select count(*) as count from (select 1 from job_waiting where endpoint_id = $1 limit $2) as places', [endpointId, rows]) : [];
      const { rows: table, jobs, only } = listed(status, Number(waiting?.['count']) < rows);
      const [last] = await query(`select seq from ${table} where endpoint_id = $1 and seq < $2 order by seq desc limit 1 offset $3`, [endpointId, before, rows - 1]);
      const next = last?.['seq'] as number | undefined;
      const found = await query(
        `select job.seq, ${PAYLOAD_BYTES} as bytes from ${jobs} where job.endpoint_id = $1 and job.seq < $2 and job.seq >= $3 ${only} and (job.status = 'IN_QUEUE' or job.due_at > $4) order by job.seq desc`,
        [endpointId, before, next ?? 0, now],
      );
      return { jobs: found.map((row) => ({ seq: row['seq'] as number, bytes: row['bytes'] as number })), next };
    },

    findAll: async (endpointId, seqs) =>
      (await queryJobs(`select ${JOB}, ${PAYLOADS} from ${JOBS_AND_LEASES} where job.endpoint_id = $1 and job.seq = any($2::bigint[]) order by job.seq desc`, [endpointId, seqs])).map(wholeFrom),

    counts: async (endpointId) => {
      const [row] = await query(
        `select coalesce(sum(queued), 0)::bigint as queued, coalesce(sum(running), 0)::bigint as running, coalesce(sum(completed), 0)::bigint as completed,
          coalesce(sum(failed), 0)::bigint as failed, coalesce(sum(retried), 0)::bigint as retried from job_counts where endpoint_id = $1`,
        [endpointId],
      );
      return { inQueue: Number(row?.['queued']), inProgress: Number(row?.['running']), completed: Number(row?.['completed']), failed: Number(row?.['failed']), retried: Number(row?.['retried']) };
    },

    waiting: async (endpointId, queuedBefore, limit) => {
      const [row] = await query(
        `select count(*) as waiting, count(*) filter (where queued_at <= $2) as late from (select queued_at from job_waiting where endpoint_id = $1 and low_priority = 0 order by account_id, position limit $3) as heads`,
        [endpointId, queuedBefore, limit],
      );
      return { waiting: Number(row?.['waiting']), late: Number(row?.['late']) };
    },

    ahead: async (job, limit) => {
      const [row] = await query(
        `select count(*) as before from (select 1 from job_waiting where endpoint_id = $1 and (low_priority < $2 or (low_priority = $2 and position < $3)) limit $4) as waiting`,
        [job.endpointId, job.lowPriority ? 1 : 0, job.position, limit],
      );
      return Number(row?.['before']);
    },

    running: async (endpointId) =>
      (await queryJobs(`select ${JOB} from job_leases as lease join jobs as job on job.endpoint_id = lease.endpoint_id and job.seq = lease.seq where $1::text is null or lease.endpoint_id = $1`, [endpointId ?? null])).map(jobFromValues),

    removeEndpoint: (endpointId) =>
      inTransaction(pool, async (client) => {
        for (const table of ['jobs', 'job_waiting', 'job_leases', 'job_chunks', 'job_counts', 'job_workers', 'webhook_deliveries']) await client.query(`delete from ${table} where endpoint_id = $1`, [endpointId]);
      }),

    noteWorkers: async (workers) => {
      const values = workers.map(({ endpointId, workerId, seenAt, busy, unhealthy }) => [endpointId, workerId, seenAt, busy, unhealthy]);
      await query(
        `insert into job_workers (endpoint_id, worker_id, seen_at, busy, unhealthy) select * from ${unnest(['endpoint_id', 'worker_id', 'seen_at', 'busy', 'unhealthy'])}
          on conflict (endpoint_id, worker_id) do update set seen_at = greatest(job_workers.seen_at, excluded.seen_at), busy = excluded.busy, unhealthy = excluded.unhealthy`,
        columnsOf(values, 5),
      );
    },

    workers: async (endpointId, seenSince) => (await query('select * from job_workers where endpoint_id = $1 and seen_at >= $2', [endpointId, seenSince])).map(workerFromRow),

    dueDeliveries: async (now, limit) => (await query('select * from webhook_deliveries where next_at <= $1 order by next_at limit $2', [now, limit])).map(deliveryFromRow),

    saveDelivery: async (delivery) => {
      await query(SAVE_DELIVERY, deliveryValues(delivery));
    },

    changeDelivery: async (seen, next) => {
      const columns = DELIVERY_COLUMNS.map((column, index) => `${column} = $${index + 1}`).join(', ');
      const [id, endpointId, nextAt] = [1, 2, 3].map((offset) => `$${DELIVERY_COLUMNS.length + offset}`);
      const changed = await query(`update webhook_deliveries set ${columns} where id = ${id} and endpoint_id = ${endpointId} and next_at is not distinct from ${nextAt} returning id`, [...deliveryValues(next), seen.id, seen.endpointId, seen.nextAt]);
      return changed.length > 0;
    },

    forgetDeliveries: async (before) => {
      await query('delete from webhook_deliveries where next_at is null and updated_at < $1', [before]);
    },

    deliveries: async (endpointId, { jobId, limit }) =>
      (await query('select * from webhook_deliveries where endpoint_id = $1 and ($2::text is null or job_id = $2) order by created_at desc, id desc limit $3', [endpointId, jobId ?? null, limit])).map(deliveryFromRow),

    findDelivery: async (endpointId, id) => {
      const [row] = await query('select * from webhook_deliveries where endpoint_id = $1 and id = $2', [endpointId, id]);
      return row === undefined ? undefined : deliveryFromRow(row);
    },
  };
}

const SAVE_DELIVERY = `insert into webhook_deliveries (${DELIVERY_COLUMNS.join(', ')}) values (${DELIVERY_COLUMNS.map((_, index) => `$${index + 1}`).join(', ')})
  on conflict (id) do update set ${DELIVERY_COLUMNS.slice(1).map((column) => `${column} = excluded.${column}`).join(', ')}`;

/**
 * Most changes end a job that this server handed out. Those need no look: they are written if
 * the lease is still the same. Answers which could be done so.
 */
async function tryEnds(lanes: Pool, server: string, handedOut: HandedOut, items: Transition[]): Promise<Map<Transition, Changed>> {
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

const KEY = ['endpoint_id', 'seq'];
/** In the order of their keys, so that two servers never wait for each other. */
const LOCK_JOBS = `select 1 from jobs as job where (job.endpoint_id, job.seq) in (select * from ${unnest(KEY)}) order by job.endpoint_id, job.seq for update`;
/** A statement of its own: whatever the lock waited for shows only in the next one. */
const LOCKED_JOBS = `select ${JOB} from ${JOBS_AND_LEASES} where (job.endpoint_id, job.seq) in (select * from ${unnest(KEY)})`;

/** Locks the jobs, then asks each rule. */
async function applyChanges(client: PoolClient, server: string, items: Transition[]): Promise<(Changed | undefined)[]> {
  const keys = columnsOf(items.map(({ endpointId, seq }) => [endpointId, seq]), KEY.length);
  await client.query({ name: 'lock jobs', text: LOCK_JOBS, values: keys });
  const { rows } = await client.query<Value[]>({ name: 'locked jobs', text: LOCKED_JOBS, values: keys, rowMode: 'array' });
  const jobs = new Map(rows.map(jobFromValues).map((job) => [keyOf(job.endpointId, job.seq), job]));
  const moves: Move[] = [];
  const results = items.map(({ endpointId, seq, next }): Changed | undefined => {
    const key = keyOf(endpointId, seq);
    const before = jobs.get(key);
    if (before === undefined) return undefined;
    const change = next(before);
    if (change === undefined) return { before, after: before, changed: false };
    moves.push({ before, change });
    // A later item of the same batch sees what this one did.
    if (change.remove === true) jobs.delete(key);
    else jobs.set(key, change.job);
    return { before, after: change.job, changed: true };
  });
  await writeChanges(client, `${server} change`, moves);
  return results;
}

async function writeChanges(client: PoolClient, lane: string, moves: Move[]): Promise<void> {
  if (moves.length === 0) return;
  for (const { before, change } of moves) if (change.delivery !== undefined) await writeDelivery(client, before, change);
  const cleared = moves.filter(({ change }) => change.remove === true || change.clearChunks === true);
  if (cleared.length > 0) await client.query(`delete from job_chunks where (endpoint_id, seq) in (select * from ${unnest(KEY)})`, columnsOf(cleared.map(({ before }) => [before.endpointId, before.seq]), 2));
  const merged = lastOfEach(moves).map((move) => ({ ...move, rows: move.change.remove === true ? removal(move.before) : rowMoves(move.before, move.change) }));
  const some = (which: (rows: RowMoves) => boolean): typeof merged => merged.filter(({ rows }) => which(rows));

  // The lock is on the job's own row. A take that was committed meanwhile shows in that a place or a lease is not as it was seen: then all is looked at again.
  // A job that waits on gets its place anew: a take reads the job as of the moment at which the place was made, or later.
  const staying = merged.filter(({ before, change }) => change.remove !== true && before.status === 'IN_QUEUE' && change.job.status === 'IN_QUEUE');
  const leaving = [...some(({ waiting }) => waiting === 'leaves'), ...staying];
  if (leaving.length > 0) await expect(client, leaving.length, LEAVE_QUEUE, columnsOf(leaving.map(({ before }) => waitingValues(before)), WAITING_COLUMNS.length));
  const renewed = some(({ lease }) => lease === 'renewed');
  if (renewed.length > 0) await expect(client, renewed.length, RENEW_LEASES, columnsOf(renewed.map(({ before, change: { job } }) => [...heldLease(before), job.dueAt]), HELD_LEASE.length + 1));
  const ended = some(({ lease }) => lease === 'ends');
  if (ended.length > 0) await expect(client, ended.length, END_LEASES, columnsOf(ended.map(({ before }) => heldLease(before)), HELD_LEASE.length));
  const entering = [...some(({ waiting }) => waiting === 'enters'), ...staying];
  if (entering.length > 0) await client.query(`insert into job_waiting (${WAITING_COLUMNS.join(', ')}) select * from ${unnest(WAITING_COLUMNS)}`, columnsOf(entering.map(({ change: { job } }) => waitingValues(job)), WAITING_COLUMNS.length));

  const gone = merged.filter(({ change }) => change.remove === true);
  if (gone.length > 0) await client.query(`delete from jobs where (endpoint_id, seq) in (select * from ${unnest(KEY)})`, columnsOf(gone.map(({ before }) => [before.endpointId, before.seq]), 2));
  const written = merged.filter(({ change, rows }) => change.remove !== true && rows.row);
  const values = columnsOf(written.map(({ change: { job, output, error }, rows }) => [
    job.endpointId, job.seq, ...changingValues(job), output ?? null, output === undefined ? 0 : 1, error ?? null, error === undefined ? 0 : 1, rows.look ? 1 : 0,
  ]), UPDATED.length);
  const counts = columnsOf(countTotals(moves).map(([endpointId, sum]) => [endpointId, sum.queued, sum.running, sum.completed, sum.failed, sum.retried]), COUNTED.length);
  const looks = written.some(({ rows }) => rows.look);
  await client.query({ name: looks ? 'update jobs and looks' : 'update jobs', text: updateJobs(looks), values: [...values, ...counts, lane] });
}

const SAME_PLACE = 'place.endpoint_id = given.endpoint_id and place.low_priority = given.low_priority and place.account_id = given.account_id and place.position = given.position and place.seq = given.seq';
const LEAVE_QUEUE = { name: 'leave queue', text: `delete from job_waiting as place using ${unnest(WAITING_COLUMNS)} where ${SAME_PLACE}` };
const HELD_LEASE = [...KEY, 'lease', 'due_at'];
const SAME_LEASE = 'lease.endpoint_id = given.endpoint_id and lease.seq = given.seq and lease.lease = given.lease and lease.due_at = given.due_at';
const RENEW_LEASES = { name: 'renew leases', text: `update job_leases as lease set due_at = given.look_at from ${unnest([...HELD_LEASE, 'look_at'])} where ${SAME_LEASE}` };
const END_LEASES = { name: 'end leases', text: `delete from job_leases as lease using ${unnest(HELD_LEASE)} where ${SAME_LEASE}` };

function heldLease(job: Job): Value[] {
  return [job.endpointId, job.seq, job.lease, job.dueAt];
}

async function expect(client: PoolClient, count: number, statement: { name: string; text: string }, values: unknown[]): Promise<void> {
  const { rowCount } = await client.query({ ...statement, values });
  if (rowCount !== count) throw new TryAgain('a job moved on while it was changed');
}

function removal(before: Job): RowMoves {
  return { waiting: before.status === 'IN_QUEUE' ? 'leaves' : undefined, lease: before.status === 'IN_PROGRESS' ? 'ends' : undefined, row: false, look: false };
}

const UPDATED = [...KEY, ...CHANGING_COLUMNS, 'output', 'has_output', 'error', 'has_error', 'looks'];
/** Where no row has to be looked at earlier, the column with the index is not named, and the index is left alone. */
const updateJobs = (looks: boolean): string => `with given as (select * from ${unnest(UPDATED)}),
  written as (update jobs set ${CHANGING_COLUMNS.map((column) => `${column} = given.${column}`).join(', ')},
      output = case when given.has_output = 1 then given.output else jobs.output end, error = case when given.has_error = 1 then given.error else jobs.error end
      ${looks ? ', look_at = case when given.looks = 1 then least(jobs.look_at, given.ttl_at) else jobs.look_at end' : ''}
    from given where jobs.endpoint_id = given.endpoint_id and jobs.seq = given.seq)
  ${ADD_COUNTS(`select endpoint_id, $${UPDATED.length + COUNTED.length + 1}, ${COUNTED.slice(1).join(', ')} from ${unnest(COUNTED, UPDATED.length + 1, 'moved')}`)}`;

async function writeDelivery(client: PoolClient, before: Job, change: JobChange): Promise<void> {
  const { rows: [row] } = await client.query<Row>('select request, output, error from jobs where endpoint_id = $1 and seq = $2', [before.endpointId, before.seq]);
  const kept = payloadsFrom(row ?? {});
  const payloads: Payloads = { request: kept.request, output: change.output === undefined ? kept.output : change.output, error: change.error === undefined ? kept.error : change.error };
  const delivery: Delivery | undefined = change.delivery?.(payloads);
  if (delivery !== undefined) await client.query(SAVE_DELIVERY, deliveryValues(delivery));
}

/** Where one batch changes a job twice, only the last version is written, with the payloads of both. */
function lastOfEach(moves: Move[]): Move[] {
  const last = new Map<string, Move>();
  for (const move of moves) {
    const key = `${move.before.endpointId} ${move.before.seq}`;
    const earlier = last.get(key);
    last.delete(key);
    last.set(key, earlier === undefined ? move : { before: earlier.before, change: { ...earlier.change, ...move.change } });
  }
  return [...last.values()];
}

function countTotals(moves: Move[]): [string, CountMoves][] {
  const totals = new Map<string, CountMoves>();
  for (const { before, change } of moves) {
    const gone = change.remove === true && (change.job.status === 'IN_QUEUE' || change.job.status === 'IN_PROGRESS');
    const move = countMoves(before, gone ? undefined : change.job);
    const sum = totals.get(before.endpointId) ?? { queued: 0, running: 0, completed: 0, failed: 0, retried: 0 };
    for (const name of Object.keys(move) as (keyof CountMoves)[]) sum[name] += move[name];
    totals.set(before.endpointId, sum);
  }
  return [...totals];
}

async function inTransaction<T>(pool: Pool, work: (client: PoolClient) => Promise<T>): Promise<T> {
  return withClient(pool, async (client) => {
    await translated(client.query('begin'));
    try {
      const result = await translated(work(client));
      await translated(client.query('commit'));
      return result;
    } catch (error) {
      await client.query('rollback').catch(() => undefined);
      throw error;
    }
  });
}

function wholeFrom(values: readonly Value[]): WholeJob {
  return { job: jobFromValues(values), payloads: { request: values[AFTER_JOB] as string, output: values[AFTER_JOB + 1] as string | null, error: values[AFTER_JOB + 2] as string | null } };
}

function keyOf(endpointId: string, seq: number): string {
  return `${endpointId} ${seq}`;
}

function payloadsFrom(row: Row): Payloads {
  return { request: row['request'] as string, output: (row['output'] ?? null) as string | null, error: (row['error'] ?? null) as string | null };
}
