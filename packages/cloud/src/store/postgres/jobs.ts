import type { Pool, PoolClient } from 'pg';
import type { Delivery, Job, JobChange, Payloads } from '../job-records.ts';
import { CHANGING_COLUMNS, changingValues, DELIVERY_COLUMNS, deliveryFromRow, deliveryValues, JOB_COLUMNS, jobFromRow, jobValues } from '../job-rows.ts';
import { countMoves } from '../jobs.ts';
import type { Changed, CountMoves, Idempotency, JobStore, Submitted } from '../jobs.ts';
import type { WholeJob } from '../job-records.ts';
import type { Row, Value } from '../sql.ts';
import { workerFromRow } from '../worker-rows.ts';
import { Batch } from './batch.ts';
import { translated, withClient } from './database.ts';

const JOB = JOB_COLUMNS.join(', ');
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

const TYPES: Record<string, string> = {
  low_priority: 'int', retries_left: 'int', retries: 'int', attempt: 'int', drained: 'int',
  seq: 'bigint', position: 'bigint', created_at: 'bigint', queued_at: 'bigint', ttl_at: 'bigint', ttl: 'bigint', execution_timeout: 'bigint',
  retention: 'bigint', taken_at: 'bigint', ended_at: 'bigint', due_at: 'bigint',
};
const typeOf = (column: string): string => TYPES[column] ?? 'text';

const INSERTED = [...JOB_COLUMNS, 'idempotency_key', 'body_hash', 'request', 'output', 'error'];
/** The columns of a batch travel as one array each. */
const unnest = (columns: readonly string[], from = 1): string => `unnest(${columns.map((column, index) => `$${from + index}::${typeOf(column)}[]`).join(', ')}) as given (${columns.join(', ')})`;

const ADD_COUNTS = (source: string): string => `insert into job_counts (endpoint_id, lane, queued, running, completed, failed, retried) ${source}
  on conflict (endpoint_id, lane) do update set queued = job_counts.queued + excluded.queued, running = job_counts.running + excluded.running,
    completed = job_counts.completed + excluded.completed, failed = job_counts.failed + excluded.failed, retried = job_counts.retried + excluded.retried`;

const INSERT_JOBS = `with added as (
    insert into jobs (${INSERTED.join(', ')}) select * from ${unnest(INSERTED)} on conflict do nothing returning endpoint_id, seq
  ), counted as (${ADD_COUNTS(`select endpoint_id, $${INSERTED.length + 1} || ' submit', count(*), 0, 0, 0, 0 from added group by endpoint_id`)})
  select endpoint_id, seq from added`;

/**
 * Waiting jobs in the order in which they go: normal before low priority, within that the
 * accounts in turn, within an account by position. The recursion steps from one queue
 * (priority and account) to the next over the index, so queues are found without counting jobs.
 * Jobs that another server is just taking are passed over. What is read of a job is read where
 * it is locked: elsewhere in the statement it would be the version from before the lock.
 */
const PICK_WAITING = `with recursive queues as (
    (select low_priority, account_id from jobs where endpoint_id = $1 and status = 'IN_QUEUE' order by low_priority, account_id limit 1)
    union all
    select following.low_priority, following.account_id from queues,
      lateral (select low_priority, account_id from jobs where endpoint_id = $1 and status = 'IN_QUEUE' and (low_priority, account_id) > (queues.low_priority, queues.account_id)
        order by low_priority, account_id limit 1) as following
  ), heads as (
    select head.* from queues,
      lateral (select waiting.*, row_number() over (order by position) as turn from (
        select ${JOB} from jobs where endpoint_id = $1 and status = 'IN_QUEUE' and low_priority = queues.low_priority and account_id = queues.account_id
        order by position limit $2 for update skip locked) as waiting) as head
  )
  select ${JOB_COLUMNS.map((column) => `picked.${column}`).join(', ')}, jobs.request from (select * from heads order by low_priority, turn, account_id limit $2) as picked
    join jobs on jobs.endpoint_id = $1 and jobs.seq = picked.seq order by picked.low_priority, picked.turn, picked.account_id`;

const KEY = ['endpoint_id', 'seq'];
const UPDATED = [...KEY, ...CHANGING_COLUMNS];

/** The queue on PostgreSQL. Each kind of call has a lane of its own, with one commit on its way at a time. */
export function postgresJobs(pool: Pool, server: string): JobStore {
  const query = async (text: string, values: unknown[]): Promise<Row[]> => (await translated(pool.query<Row>(text, values))).rows;

  const submits = new Batch<Submission, Submitted>(async (items) => {
    const values = items.map(({ whole: { job, payloads }, idempotency }) => [...jobValues(job), idempotency?.key ?? null, idempotency?.bodyHash ?? null, payloads.request, payloads.output, payloads.error]);
    const added = await query(INSERT_JOBS, [...columnsOf(values, INSERTED.length), server]);
    const keys = new Set(added.map((row) => `${String(row['endpoint_id'])} ${String(row['seq'])}`));
    return Promise.all(items.map(async (item) => (keys.has(`${item.whole.job.endpointId} ${item.whole.job.seq}`) ? submitted(item) : existing(item))));
  }, LARGEST_BATCH);

  const submitted = ({ whole: { job }, idempotency }: Submission): Submitted => ({ job, created: true, bodyHash: idempotency?.bodyHash ?? null });
  /** It was not added: the idempotency key is taken, or another server counted to the same number at the same time. */
  const existing = async ({ whole: { job }, idempotency }: Submission): Promise<Submitted> => {
    const [row] = idempotency === undefined ? [] : await query(`select ${JOB}, body_hash from jobs where endpoint_id = $1 and idempotency_key = $2`, [job.endpointId, idempotency.key]);
    if (row !== undefined && row['id'] !== job.id) return { job: jobFromRow(row), created: false, bodyHash: row['body_hash'] as string };
    const [holder] = await query('select id from jobs where endpoint_id = $1 and seq = $2', [job.endpointId, job.seq]);
    return { job, created: holder?.['id'] === job.id, bodyHash: null };
  };

  const changes = new Batch<Transition, Changed | undefined>((items) => inTransaction(pool, (client) => applyChanges(client, server, items)), LARGEST_BATCH);

  return {
    submit: (whole, idempotency) => submits.add({ whole, idempotency }),

    take: (endpointId, wanted, lease) =>
      inTransaction(pool, async (client) => {
        const { rows } = await client.query<Row>(PICK_WAITING, [endpointId, wanted]);
        const moves = rows.map((row) => {
          const before = jobFromRow(row);
          return { before, change: lease(before), request: row['request'] as string };
        });
        await writeChanges(client, `${server} take ${endpointId}`, moves);
        return moves.map(({ change, request }) => ({ job: change.job, request }));
      }),

    change: (endpointId, seq, next) => changes.add({ endpointId, seq, next }),

    find: async (endpointId, seq) => {
      const [row] = await query(`select ${JOB}, request, output, error from jobs where endpoint_id = $1 and seq = $2`, [endpointId, seq]);
      return row === undefined ? undefined : { job: jobFromRow(row), payloads: payloadsFrom(row) };
    },

    appendChunks: (endpointId, seq, chunks, allowed) =>
      inTransaction(pool, async (client) => {
        // The number may be an old one where this waited for another append. Then the numbers are taken, and the whole is tried again.
        const { rows: [row] } = await client.query<Row>(
          `select ${JOB}, (select coalesce(max(number), 0) from job_chunks where endpoint_id = $1 and seq = $2) as last from jobs where endpoint_id = $1 and seq = $2 for update`,
          [endpointId, seq],
        );
        const last = Number(row?.['last']);
        if (row === undefined || !allowed(jobFromRow(row), last)) return 0;
        await client.query('insert into job_chunks (endpoint_id, seq, number, chunk) select $1, $2, $4::int + given.place, given.chunk from unnest($3::text[]) with ordinality as given (chunk, place)', [endpointId, seq, chunks, last]);
        return last + chunks.length;
      }),

    chunks: async (endpointId, seq, after, bytes) => {
      const rows = await query(
        `select number, chunk from (select number, chunk, sum(length(chunk)) over (order by number) - length(chunk) as before from job_chunks where endpoint_id = $1 and seq = $2 and number > $3) as sized
          where before = 0 or before + length(chunk) <= $4 order by number`,
        [endpointId, seq, after, bytes],
      );
      return rows.map((row) => ({ number: row['number'] as number, text: row['chunk'] as string }));
    },

    due: async (now, limit) => (await query(`select ${JOB} from jobs where due_at <= $1 order by due_at limit $2`, [now, limit])).map(jobFromRow),

    purge: async (endpointId) => {
      const [row] = await query(
        // Locked in the order in which changes lock them too, so that neither waits for the other.
        `with waiting as (select seq from jobs where endpoint_id = $1 and status = 'IN_QUEUE' order by seq for update),
          gone as (delete from jobs using waiting where jobs.endpoint_id = $1 and jobs.seq = waiting.seq returning jobs.seq),
          chunks as (delete from job_chunks where endpoint_id = $1 and seq in (select seq from gone)),
          counted as (${ADD_COUNTS(`select $1, $2 || ' purge', -count(*), 0, 0, 0, 0 from gone`)})
          select count(*) as removed from gone`,
        [endpointId, server],
      );
      return Number(row?.['removed']);
    },

    list: async (endpointId, { status, limit, offset }) => {
      const rows = await query(
        `select ${JOB}, request, output, error from jobs where endpoint_id = $1 and ($2::text is null or status = $2) order by seq desc limit $3 offset $4`,
        [endpointId, status ?? null, limit, offset],
      );
      return rows.map((row) => ({ job: jobFromRow(row), payloads: payloadsFrom(row) }));
    },

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
        `select count(*) as waiting, count(*) filter (where queued_at <= $2) as late from (select queued_at from jobs where endpoint_id = $1 and low_priority = 0 and status = 'IN_QUEUE' order by account_id, position limit $3) as heads`,
        [endpointId, queuedBefore, limit],
      );
      return { waiting: Number(row?.['waiting']), late: Number(row?.['late']) };
    },

    ahead: async (job, limit) => {
      const [row] = await query(
        `select count(*) as before from (select 1 from jobs where endpoint_id = $1 and status = 'IN_QUEUE' and (low_priority < $2 or (low_priority = $2 and position < $3)) limit $4) as waiting`,
        [job.endpointId, job.lowPriority ? 1 : 0, job.position, limit],
      );
      return Number(row?.['before']);
    },

    running: async (endpointId) => (await query(`select ${JOB} from jobs where status = 'IN_PROGRESS' and ($1::text is null or endpoint_id = $1)`, [endpointId ?? null])).map(jobFromRow),

    removeEndpoint: (endpointId) =>
      inTransaction(pool, async (client) => {
        for (const table of ['jobs', 'job_chunks', 'job_counts', 'job_workers', 'webhook_deliveries']) await client.query(`delete from ${table} where endpoint_id = $1`, [endpointId]);
      }),

    noteWorkers: async (workers) => {
      const values = workers.map(({ endpointId, workerId, seenAt, busy, unhealthy }) => [endpointId, workerId, seenAt, busy, unhealthy]);
      await query(
        `insert into job_workers (endpoint_id, worker_id, seen_at, busy, unhealthy) select * from unnest($1::text[], $2::text[], $3::bigint[], $4::int[], $5::text[])
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

interface Move {
  before: Job;
  change: JobChange;
}

/** Locks the jobs in the order of their keys, so that two servers never wait for each other, then asks each rule. */
async function applyChanges(client: PoolClient, server: string, items: Transition[]): Promise<(Changed | undefined)[]> {
  const { rows } = await client.query<Row>(
    `select ${JOB} from jobs where (endpoint_id, seq) in (select * from unnest($1::text[], $2::bigint[])) order by endpoint_id, seq for update`,
    columnsOf(items.map(({ endpointId, seq }) => [endpointId, seq]), 2),
  );
  const jobs = new Map(rows.map((row) => [`${String(row['endpoint_id'])} ${String(row['seq'])}`, jobFromRow(row)]));
  const moves: Move[] = [];
  const results = items.map(({ endpointId, seq, next }): Changed | undefined => {
    const key = `${endpointId} ${seq}`;
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
  const gone = moves.filter(({ change }) => change.remove === true);
  const cleared = moves.filter(({ change }) => change.remove === true || change.clearChunks === true);
  if (cleared.length > 0) await client.query(`delete from job_chunks where (endpoint_id, seq) in (select * from unnest($1::text[], $2::bigint[]))`, columnsOf(cleared.map(({ before }) => [before.endpointId, before.seq]), 2));
  if (gone.length > 0) await client.query(`delete from jobs where (endpoint_id, seq) in (select * from unnest($1::text[], $2::bigint[]))`, columnsOf(gone.map(({ before }) => [before.endpointId, before.seq]), 2));
  const kept = lastOfEach(moves.filter(({ change }) => change.remove !== true));
  const totals = countTotals(moves);
  const counts = columnsOf(totals.map(([endpointId, sum]) => [endpointId, sum.queued, sum.running, sum.completed, sum.failed, sum.retried]), 6);
  const values = columnsOf(kept.map(({ change: { job, output, error } }) => [
    job.endpointId, job.seq, ...changingValues(job), output === undefined ? null : output, output === undefined ? 0 : 1, error === undefined ? null : error, error === undefined ? 0 : 1,
  ]), UPDATED.length + 4);
  await client.query(UPDATE_JOBS, [...values, ...counts, lane]);
}

const PAYLOAD_FLAGS = ['output', 'has_output', 'error', 'has_error'];
const UPDATE_JOBS = `with given as (select * from unnest(${[...UPDATED, ...PAYLOAD_FLAGS].map((column, index) => `$${index + 1}::${column.startsWith('has_') ? 'int' : typeOf(column)}[]`).join(', ')}) as given (${[...UPDATED, ...PAYLOAD_FLAGS].join(', ')})),
  written as (update jobs set ${CHANGING_COLUMNS.map((column) => `${column} = given.${column}`).join(', ')},
      output = case when given.has_output = 1 then given.output else jobs.output end, error = case when given.has_error = 1 then given.error else jobs.error end
    from given where jobs.endpoint_id = given.endpoint_id and jobs.seq = given.seq)
  ${ADD_COUNTS(`select endpoint_id, $${UPDATED.length + 11}, queued, running, completed, failed, retried from unnest(${['text', 'bigint', 'bigint', 'bigint', 'bigint', 'bigint'].map((type, index) => `$${UPDATED.length + 5 + index}::${type}[]`).join(', ')}) as moved (endpoint_id, queued, running, completed, failed, retried)`)}`;

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

function payloadsFrom(row: Row): Payloads {
  return { request: row['request'] as string, output: (row['output'] ?? null) as string | null, error: (row['error'] ?? null) as string | null };
}

/** Rows turned into one array for each column. */
function columnsOf(rows: readonly (readonly (Value | number)[])[], width: number): unknown[][] {
  return Array.from({ length: width }, (_, column) => rows.map((row) => row[column]));
}
