import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { fairShare } from '../fair-share.ts';
import type { Delivery, Job, JobChange, Payloads } from '../job-records.ts';
import { CHANGING_COLUMNS, changingValues, DELIVERY_COLUMNS, deliveryFromRow, deliveryValues, JOB_COLUMNS, jobFromRow, jobValues } from '../job-rows.ts';
import { countMoves } from '../jobs.ts';
import type { CountMoves, JobStore } from '../jobs.ts';
import type { Row } from '../sql.ts';
import { workerFromRow } from '../worker-rows.ts';
import type { GroupCommit } from './group-commit.ts';

const JOB = JOB_COLUMNS.join(', ');
/** There is one server on a SQLite file, and it does one thing at a time. */
const LANE = 'sqlite';

/** The queue on SQLite. Changes run in a group commit; looks run at once, between two of them. */
export function sqliteJobs(connection: DatabaseSync, group: GroupCommit): JobStore {
  const prepared = new Map<string, StatementSync>();
  const statement = (text: string): StatementSync => {
    const known = prepared.get(text) ?? connection.prepare(text);
    prepared.set(text, known);
    return known;
  };
  const look = <T>(work: () => T): Promise<T> => {
    try {
      return Promise.resolve(work());
    } catch (error) {
      return Promise.reject(error instanceof Error ? error : new Error(String(error)));
    }
  };

  const insertJob = statement(`insert or ignore into jobs (${JOB}, idempotency_key, body_hash, request, output, error) values (${marks(JOB_COLUMNS.length + 5)})`);
  const holderOfKey = statement(`select ${JOB}, body_hash from jobs where endpoint_id = ? and idempotency_key = ?`);
  const selectJob = statement(`select ${JOB} from jobs where endpoint_id = ? and seq = ?`);
  const selectPayloads = statement('select request, output, error from jobs where endpoint_id = ? and seq = ?');
  const updateJob = statement(`update jobs set ${assign(CHANGING_COLUMNS)} where endpoint_id = ? and seq = ?`);
  const updateOutput = statement('update jobs set output = ? where endpoint_id = ? and seq = ?');
  const updateError = statement('update jobs set error = ? where endpoint_id = ? and seq = ?');
  const updateEnd = statement(`update jobs set ${assign(CHANGING_COLUMNS)}, output = ?, error = ? where endpoint_id = ? and seq = ?`);
  const deleteJob = statement('delete from jobs where endpoint_id = ? and seq = ?');
  const deleteChunks = statement('delete from job_chunks where endpoint_id = ? and seq = ?');
  const waitingOf = statement(`select ${JOB}, request from jobs where endpoint_id = ? and low_priority = ? and account_id = ? and status = 'IN_QUEUE' order by position limit ?`);
  const nextAccount = statement(`select account_id from jobs where endpoint_id = ? and low_priority = ? and account_id > ? and status = 'IN_QUEUE' order by account_id limit 1`);
  const addCounts = statement(`insert into job_counts (endpoint_id, lane, queued, running, completed, failed, retried) values (?, '${LANE}', ?, ?, ?, ?, ?)
    on conflict (endpoint_id, lane) do update set queued = queued + excluded.queued, running = running + excluded.running, completed = completed + excluded.completed, failed = failed + excluded.failed, retried = retried + excluded.retried`);
  const saveDelivery = statement(`insert or replace into webhook_deliveries (${DELIVERY_COLUMNS.join(', ')}) values (${marks(DELIVERY_COLUMNS.length)})`);

  /** Counts move once for each group, not for each job. */
  const moves = new Map<string, CountMoves>();
  const count = (endpointId: string, move: CountMoves): void => {
    const sum = moves.get(endpointId);
    if (sum === undefined) moves.set(endpointId, { ...move });
    else for (const name of Object.keys(move) as (keyof CountMoves)[]) sum[name] += move[name];
  };
  group.beforeCommit = () => {
    for (const [endpointId, sum] of moves) addCounts.run(endpointId, sum.queued, sum.running, sum.completed, sum.failed, sum.retried);
    moves.clear();
  };
  group.afterRollback = () => moves.clear();
  const run = <T>(work: () => T): Promise<T> => group.run(work);

  const payloadsOf = (job: Job): Payloads => selectPayloads.get(job.endpointId, job.seq) as unknown as Payloads;

  function write(before: Job, change: JobChange): void {
    const { job, output, error } = change;
    const key = [job.endpointId, job.seq] as const;
    if (change.delivery !== undefined) {
      const kept = payloadsOf(before);
      const payloads = { request: kept.request, output: output === undefined ? kept.output : output, error: error === undefined ? kept.error : error };
      saveDelivery.run(...deliveryValues(change.delivery(payloads)));
    }
    count(job.endpointId, countMoves(before, change.remove === true ? endedOrGone(job) : job));
    if (change.clearChunks === true || change.remove === true) deleteChunks.run(...key);
    if (change.remove === true) deleteJob.run(...key);
    else if (output !== undefined && error !== undefined) updateEnd.run(...changingValues(job), output, error, ...key);
    else {
      updateJob.run(...changingValues(job), ...key);
      if (output !== undefined) updateOutput.run(output, ...key);
      if (error !== undefined) updateError.run(error, ...key);
    }
  }

  function accountsWaiting(endpointId: string, lowPriority: number): string[] {
    const accounts: string[] = [];
    let after = '';
    for (;;) {
      const found = nextAccount.get(endpointId, lowPriority, after) as { account_id: string } | undefined;
      if (found === undefined) return accounts;
      after = found.account_id;
      accounts.push(after);
    }
  }

  function waitingJobs(endpointId: string, wanted: number): Row[] {
    const found: Row[] = [];
    for (const lowPriority of [0, 1]) {
      const left = wanted - found.length;
      if (left <= 0) break;
      const queues = accountsWaiting(endpointId, lowPriority).map((accountId) => waitingOf.all(endpointId, lowPriority, accountId, left) as Row[]);
      const shares = fairShare(queues.map(({ length }) => length), left);
      queues.forEach((queue, index) => found.push(...queue.slice(0, shares[index])));
    }
    return found;
  }

  return {
    submit: ({ job, payloads }, idempotency) =>
      run(() => {
        if (idempotency !== undefined) {
          const holder = holderOfKey.get(job.endpointId, idempotency.key) as Row | undefined;
          if (holder !== undefined) return { job: jobFromRow(holder), created: isSame(holder, job), bodyHash: holder['body_hash'] as string };
        }
        const { changes } = insertJob.run(...jobValues(job), idempotency?.key ?? null, idempotency?.bodyHash ?? null, payloads.request, payloads.output, payloads.error);
        if (changes === 0) return { job, created: isSame(selectJob.get(job.endpointId, job.seq) as Row, job), bodyHash: null };
        count(job.endpointId, countMoves(undefined, job));
        return { job, created: true, bodyHash: idempotency?.bodyHash ?? null };
      }),

    take: (endpointId, wanted, lease) =>
      group.runLast(() =>
        waitingJobs(endpointId, wanted).map((row) => {
          const before = jobFromRow(row);
          const change = lease(before);
          write(before, change);
          return { job: change.job, request: row['request'] as string };
        }),
      ),

    change: (endpointId, seq, next) =>
      run(() => {
        const row = selectJob.get(endpointId, seq) as Row | undefined;
        if (row === undefined) return undefined;
        const before = jobFromRow(row);
        const change = next(before);
        if (change === undefined) return { before, after: before, changed: false };
        write(before, change);
        return { before, after: change.job, changed: true };
      }),

    find: (endpointId, seq) =>
      look(() => {
        const row = statement(`select ${JOB}, request, output, error from jobs where endpoint_id = ? and seq = ?`).get(endpointId, seq) as Row | undefined;
        return row === undefined ? undefined : { job: jobFromRow(row), payloads: payloadsFrom(row) };
      }),

    appendChunks: (endpointId, seq, chunks, allowed) =>
      run(() => {
        const row = selectJob.get(endpointId, seq) as Row | undefined;
        if (row === undefined) return 0;
        const { last } = statement('select coalesce(max(number), 0) as last from job_chunks where endpoint_id = ? and seq = ?').get(endpointId, seq) as { last: number };
        if (!allowed(jobFromRow(row), last)) return 0;
        const insert = statement('insert into job_chunks (endpoint_id, seq, number, chunk) values (?, ?, ?, ?)');
        chunks.forEach((chunk, index) => insert.run(endpointId, seq, last + index + 1, chunk));
        return last + chunks.length;
      }),

    chunks: (endpointId, seq, after, bytes) =>
      look(() => {
        const found: { number: number; text: string }[] = [];
        let size = 0;
        for (const row of statement('select number, chunk from job_chunks where endpoint_id = ? and seq = ? and number > ? order by number').iterate(endpointId, seq, after)) {
          const text = row['chunk'] as string;
          size += text.length;
          if (found.length > 0 && size > bytes) break;
          found.push({ number: row['number'] as number, text });
        }
        return found;
      }),

    due: (now, limit) => look(() => (statement(`select ${JOB} from jobs where due_at <= ? order by due_at limit ?`).all(now, limit) as Row[]).map(jobFromRow)),

    purge: (endpointId) =>
      run(() => {
        statement(`delete from job_chunks where endpoint_id = ? and seq in (select seq from jobs where endpoint_id = ? and status = 'IN_QUEUE')`).run(endpointId, endpointId);
        const removed = Number(statement(`delete from jobs where endpoint_id = ? and status = 'IN_QUEUE'`).run(endpointId).changes);
        count(endpointId, { queued: -removed, running: 0, completed: 0, failed: 0, retried: 0 });
        return removed;
      }),

    list: (endpointId, { status, limit, offset }) =>
      look(() => {
        const only = status === undefined ? '' : 'and status = ?';
        const rows = statement(`select ${JOB}, request, output, error from jobs where endpoint_id = ? ${only} order by seq desc limit ? offset ?`).all(...[endpointId, ...(status === undefined ? [] : [status]), limit, offset]) as Row[];
        return rows.map((row) => ({ job: jobFromRow(row), payloads: payloadsFrom(row) }));
      }),

    counts: (endpointId) =>
      look(() => {
        const sum = statement(
          'select coalesce(sum(queued), 0) as "inQueue", coalesce(sum(running), 0) as "inProgress", coalesce(sum(completed), 0) as completed, coalesce(sum(failed), 0) as failed, coalesce(sum(retried), 0) as retried from job_counts where endpoint_id = ?',
        ).get(endpointId) as { inQueue: number; inProgress: number; completed: number; failed: number; retried: number };
        return { ...sum };
      }),

    waiting: (endpointId, queuedBefore, limit) =>
      look(() => {
        const found = statement(
          `select count(*) as waiting, coalesce(sum(queued_at <= ?), 0) as late from (select queued_at from jobs where endpoint_id = ? and low_priority = 0 and status = 'IN_QUEUE' order by account_id, position limit ?)`,
        ).get(queuedBefore, endpointId, limit) as { waiting: number; late: number };
        return { ...found };
      }),

    ahead: (job, limit) =>
      look(() => {
        const { before } = statement(
          `select count(*) as before from (select 1 from jobs where endpoint_id = ? and status = 'IN_QUEUE' and (low_priority < ? or (low_priority = ? and position < ?)) limit ?)`,
        ).get(job.endpointId, job.lowPriority ? 1 : 0, job.lowPriority ? 1 : 0, job.position, limit) as { before: number };
        return before;
      }),

    running: (endpointId) =>
      look(() => {
        const rows = endpointId === undefined ? statement(`select ${JOB} from jobs where status = 'IN_PROGRESS'`).all() : statement(`select ${JOB} from jobs where endpoint_id = ? and status = 'IN_PROGRESS'`).all(endpointId);
        return (rows as Row[]).map(jobFromRow);
      }),

    removeEndpoint: (endpointId) =>
      run(() => {
        moves.delete(endpointId);
        for (const table of ['jobs', 'job_chunks', 'job_counts', 'job_workers', 'webhook_deliveries']) statement(`delete from ${table} where endpoint_id = ?`).run(endpointId);
      }),

    noteWorkers: (workers) =>
      run(() => {
        const save = statement('insert or replace into job_workers (endpoint_id, worker_id, seen_at, busy, unhealthy) values (?, ?, ?, ?, ?)');
        for (const worker of workers) save.run(worker.endpointId, worker.workerId, worker.seenAt, worker.busy, worker.unhealthy);
      }),

    workers: (endpointId, seenSince) =>
      look(() => (statement('select * from job_workers where endpoint_id = ? and seen_at >= ?').all(endpointId, seenSince) as Row[]).map(workerFromRow)),

    dueDeliveries: (now, limit) =>
      look(() => (statement(`select * from webhook_deliveries where next_at <= ? order by next_at limit ?`).all(now, limit) as Row[]).map(deliveryFromRow)),

    saveDelivery: (delivery: Delivery) =>
      run(() => {
        saveDelivery.run(...deliveryValues(delivery));
      }),

    changeDelivery: (seen, next) =>
      run(() => {
        const columns = assign(DELIVERY_COLUMNS);
        const changed = statement(`update webhook_deliveries set ${columns} where id = ? and endpoint_id = ? and next_at is ?`).run(...deliveryValues(next), seen.id, seen.endpointId, seen.nextAt);
        return changed.changes > 0;
      }),

    forgetDeliveries: (before) =>
      run(() => {
        statement('delete from webhook_deliveries where next_at is null and updated_at < ?').run(before);
      }),

    deliveries: (endpointId, { jobId, limit }) =>
      look(() => {
        const only = jobId === undefined ? '' : 'and job_id = ?';
        const rows = statement(`select * from webhook_deliveries where endpoint_id = ? ${only} order by created_at desc, id desc limit ?`).all(...[endpointId, ...(jobId === undefined ? [] : [jobId]), limit]) as Row[];
        return rows.map(deliveryFromRow);
      }),

    findDelivery: (endpointId, id) =>
      look(() => {
        const row = statement('select * from webhook_deliveries where endpoint_id = ? and id = ?').get(endpointId, id) as Row | undefined;
        return row === undefined ? undefined : deliveryFromRow(row);
      }),
  };
}

/** The number is taken: by this very job, submitted a second time, or by another. */
function isSame(row: Row, job: Job): boolean {
  return row['id'] === job.id;
}

/** A job that ends and goes in one move still counts as ended. */
function endedOrGone(job: Job): Job | undefined {
  return job.status === 'IN_QUEUE' || job.status === 'IN_PROGRESS' ? undefined : job;
}

function payloadsFrom(row: Row): Payloads {
  return { request: row['request'] as string, output: row['output'] as string | null, error: row['error'] as string | null };
}

function marks(count: number): string {
  return Array.from({ length: count }, () => '?').join(', ');
}

function assign(columns: readonly string[]): string {
  return columns.map((column) => `${column} = ?`).join(', ');
}
