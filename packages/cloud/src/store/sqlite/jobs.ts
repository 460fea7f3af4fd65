import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { fairShare } from '../fair-share.ts';
import { MOST_LOOKS, rowMoves } from '../job-moves.ts';
import { isOver } from '../job-records.ts';
import type { Delivery, Job, JobChange, Payloads, WholeJob } from '../job-records.ts';
import {
  AFTER_JOB, CHANGING_COLUMNS, changingValues, DELIVERY_COLUMNS, deliveryFromRow, deliveryValues, INSERTED_COLUMNS, insertedValues, JOB, jobFromValues, JOBS_AND_LEASES,
  LEASE_COLUMNS, leaseValues, listed, nextLook, PAYLOAD_BYTES, PAYLOADS, WAITING_COLUMNS, WAITING_JOB, waitingJobFrom, waitingValues,
} from '../job-rows.ts';
import { countMoves, endAfter } from '../jobs.ts';
import type { AskedChange, Changed, Claim, CountMoves, JobStore, StreamEnd, TakenJob } from '../jobs.ts';
import type { Row, Value } from '../sql.ts';
import { workerFromRow } from '../worker-rows.ts';
import type { GroupCommit } from './group-commit.ts';
import { NotedJobs } from './noted-jobs.ts';
import type { NotedJob } from './noted-jobs.ts';

/** There is one server on a SQLite file, and it does one thing at a time. */
const LANE = 'sqlite';
/** A note fits on a page of the database: a larger request is written once, in its row. */
const LARGEST_NOTED = 2_000;

interface FreshJob extends WholeJob {
  /** Where it is not, it may go out with a note. */
  isWritten: boolean;
}

/** A job that leaves the queue, or was never in it. */
interface HeadJob extends TakenJob {
  isWritten: boolean;
}

/** The queue on SQLite. Changes run in a group commit; looks run at once, between two of them. */
export function sqliteJobs(connection: DatabaseSync, group: GroupCommit): JobStore {
  const prepared = new Map<string, StatementSync>();
  const prepare = (text: string): StatementSync => {
    const known = prepared.get(text) ?? connection.prepare(text);
    prepared.set(text, known);
    return known;
  };
  const select = (text: string): Pick<StatementSync, 'get' | 'all' | 'iterate'> => prepare(text);
  /** A statement that writes: asked for when it is to run, which begins the transaction. */
  const writing = (text: string): (() => StatementSync) => {
    const known = prepare(text);
    return () => {
      group.begin();
      return known;
    };
  };
  /** A statement whose rows are jobs, as arrays. */
  const selectJobs = (text: string): Pick<StatementSync, 'get' | 'all'> => {
    const known = prepared.get(text);
    if (known !== undefined) return known;
    const made = prepare(text);
    made.setReturnArrays(true);
    return made;
  };
  const look = <T>(work: () => T): Promise<T> => group.look(work);

  const insertJob = writing(`insert or ignore into jobs (${INSERTED_COLUMNS.join(', ')}) values (${marks(INSERTED_COLUMNS.length)})`);
  const insertEnded = writing(`insert into jobs (${INSERTED_COLUMNS.join(', ')}, output, error) values (${marks(INSERTED_COLUMNS.length + 2)})`);
  const insertNote = writing('insert into job_notes (seq, note) values (?, ?)');
  const deleteNote = writing('delete from job_notes where seq = ?');
  const insertWaiting = writing(`insert into job_waiting (${WAITING_COLUMNS.join(', ')}) values (${marks(WAITING_COLUMNS.length)})`);
  const insertLease = writing(`insert into job_leases (${LEASE_COLUMNS.join(', ')}) values (${marks(LEASE_COLUMNS.length)})`);
  const holderOfKey = selectJobs(`select ${JOB}, job.body_hash from ${JOBS_AND_LEASES} where job.endpoint_id = ? and job.idempotency_key = ?`);
  const selectJob = selectJobs(`select ${JOB} from ${JOBS_AND_LEASES} where job.seq = ? and job.endpoint_id = ?`);
  const selectWhole = selectJobs(`select ${JOB}, ${PAYLOADS} from ${JOBS_AND_LEASES} where job.seq = ? and job.endpoint_id = ?`);
  const selectPayloads = select('select request, output, error from jobs where seq = ?');
  const updateJob = writing(`update jobs set ${assign(CHANGING_COLUMNS)} where seq = ?`);
  const updateOutput = writing('update jobs set output = ? where seq = ?');
  const updateError = writing('update jobs set error = ? where seq = ?');
  const updateEnd = writing(`update jobs set ${assign(CHANGING_COLUMNS)}, output = ?, error = ? where seq = ?`);
  const lookEarlier = writing('update jobs set look_at = min(look_at, ?) where seq = ?');
  const lookAgain = writing('update jobs set look_at = ? where seq = ?');
  const renewLease = writing('update job_leases set due_at = ? where seq = ?');
  const deleteLease = writing('delete from job_leases where seq = ?');
  const deleteWaiting = writing('delete from job_waiting where endpoint_id = ? and low_priority = ? and account_id = ? and position = ? and seq = ?');
  const deleteHead = writing('delete from job_waiting where endpoint_id = ? and low_priority = ? and account_id = ? and (position, seq) <= (?, ?)');
  const deleteJob = writing('delete from jobs where seq = ?');
  const deleteChunks = writing('delete from job_chunks where endpoint_id = ? and seq = ?');
  const waitingOf = selectJobs(`select ${WAITING_JOB} from job_waiting as place cross join jobs as job
    where place.endpoint_id = ? and place.low_priority = ? and place.account_id = ? and job.seq = place.seq order by place.position, place.seq limit ?`);
  const nextAccount = select('select account_id from job_waiting where endpoint_id = ? and low_priority = ? and account_id > ? order by account_id limit 1');
  const addCounts = writing(`insert into job_counts (endpoint_id, lane, queued, running, completed, failed, retried) values (?, '${LANE}', ?, ?, ?, ?, ?)
    on conflict (endpoint_id, lane) do update set queued = queued + excluded.queued, running = running + excluded.running, completed = completed + excluded.completed, failed = failed + excluded.failed, retried = retried + excluded.retried`);
  const saveDelivery = writing(`insert or replace into webhook_deliveries (${DELIVERY_COLUMNS.join(', ')}) values (${marks(DELIVERY_COLUMNS.length)})`);

  /** Jobs in workers' hands, as they were last written: the next thing that happens to them needs no look. Whoever is not here is looked for. */
  const held = new Map<number, Job>();
  /** Jobs that came in with this group. Where a worker waits for them they never enter the queue. */
  const fresh = new Map<number, FreshJob>();
  /** Jobs that went straight to a worker and have a note instead of rows. */
  const notes = new NotedJobs();
  /** The highest number that a job has had: whoever has a higher one is new, without a look. */
  let newest = Number(connection.prepare('select coalesce(max(seq), 0) as seq from jobs').get()?.['seq']);
  /** Endpoints where nobody waits, as far as it is known. */
  const empty = new Set<string>();
  /** Counts move once for each group, not for each job. */
  const moves = new Map<string, CountMoves>();
  const count = (endpointId: string, move: CountMoves): void => {
    const sum = moves.get(endpointId);
    if (sum === undefined) moves.set(endpointId, { ...move });
    else for (const name of Object.keys(move) as (keyof CountMoves)[]) sum[name] += move[name];
  };
  group.partner = {
    beforeCommit: () => {
      place();
      for (const [endpointId, sum] of moves) addCounts().run(endpointId, sum.queued, sum.running, sum.completed, sum.failed, sum.retried);
      moves.clear();
    },
    afterCommit: () => notes.committed(),
    afterRollback: () => {
      notes.undo();
      moves.clear();
      held.clear();
      fresh.clear();
      empty.clear();
    },
    get hasNotes() {
      return notes.size > 0;
    },
    writeOut: () => notes.all().forEach(writeOut),
  };
  for (const { note } of select('select note from job_notes').all() as { note: string }[]) notes.add(JSON.parse(note) as NotedJob);
  notes.committed();

  const runOnOne = <T>(work: () => T): Promise<T> => group.run(work);
  const runUntold = <T>(work: () => T): Promise<T> => group.runUntold(work);
  /** For work that looks at all jobs. */
  const run = <T>(work: () => T): Promise<T> =>
    group.run(() => {
      notes.all().forEach(writeOut);
      return work();
    });

  /** Leaves a job that goes straight to a worker in one row, which is all that is needed if it ends at once. */
  function note(job: NotedJob): void {
    notes.add(job);
    insertNote().run(job.submitted.seq, JSON.stringify(job));
  }

  function removeNote(seq: number): void {
    notes.remove(seq);
    deleteNote().run(seq);
  }

  /** The rows that a noted job would have. */
  function writeOut({ submitted, held: job, request }: NotedJob): void {
    removeNote(job.seq);
    insertJob().run(...insertedValues(submitted, undefined, request));
    insertLease().run(...leaseValues(job));
    held.set(job.seq, job);
    count(job.endpointId, countMoves(undefined, job));
  }

  /** Whoever came in and was not taken waits. */
  function place(): void {
    for (const { job, payloads, isWritten } of fresh.values()) {
      if (!isWritten) insertJob().run(...insertedValues(job, undefined, payloads.request));
      if (!isWritten) count(job.endpointId, countMoves(undefined, job));
      wait(job);
    }
    fresh.clear();
  }

  function wait(job: Job): void {
    insertWaiting().run(...waitingValues(job));
    empty.delete(job.endpointId);
  }

  function current(endpointId: string, seq: number): Job | undefined {
    const noted = notes.get(seq);
    if (noted !== undefined) writeOut(noted);
    const known = held.get(seq);
    if (known?.endpointId === endpointId) return known;
    const values = valuesOf(selectJob.get(seq, endpointId));
    return values === undefined ? undefined : jobFromValues(values);
  }

  function write(before: Job, change: JobChange): void {
    const { job, output, error } = change;
    const { seq } = job;
    if (change.delivery !== undefined) {
      const kept = selectPayloads.get(seq) as unknown as Payloads;
      const payloads = { request: kept.request, output: output === undefined ? kept.output : output, error: error === undefined ? kept.error : error };
      saveDelivery().run(...deliveryValues(change.delivery(payloads)));
    }
    count(job.endpointId, countMoves(before, change.remove === true ? endedOrGone(job) : job));
    if (change.remove === true) return forget(before);
    if (change.clearChunks === true) deleteChunks().run(job.endpointId, seq);
    const { waiting, lease, row, look: looks } = rowMoves(before, change);
    if (waiting === 'leaves') leaveQueue(before);
    else if (waiting === 'enters') wait(job);
    if (lease === 'ends') deleteLease().run(seq);
    else if (lease === 'renewed') renewLease().run(job.dueAt, seq);
    if (job.status === 'IN_PROGRESS') held.set(seq, job);
    else held.delete(seq);
    if (!row) return;
    if (output !== undefined && error !== undefined) updateEnd().run(...changingValues(job), output, error, seq);
    else {
      updateJob().run(...changingValues(job), seq);
      if (output !== undefined) updateOutput().run(output, seq);
      if (error !== undefined) updateError().run(error, seq);
    }
    if (looks) lookEarlier().run(job.ttlAt, seq);
  }

  function change(endpointId: string, { seq, next }: AskedChange): Changed | undefined {
    if (fresh.has(seq)) place();
    const noted = notes.get(seq);
    const before = noted?.held ?? current(endpointId, seq);
    if (before?.endpointId !== endpointId) return undefined;
    const made = next(before);
    if (made === undefined) return { before, after: before, changed: false };
    if (noted === undefined || !writeEnded(noted, made)) {
      if (noted !== undefined) writeOut(noted);
      write(before, made);
    }
    return { before, after: made.job, changed: true };
  }

  /** The end of a job that has only a note: all of it at once. False where there is more to it. */
  function writeEnded({ request }: NotedJob, { job, output, error, delivery, remove }: JobChange): boolean {
    if (job.endedAt === null || output === undefined || error === undefined || delivery !== undefined || remove === true) return false;
    removeNote(job.seq);
    insertEnded().run(...insertedValues(job, undefined, request), output, error);
    count(job.endpointId, countMoves(undefined, job));
    return true;
  }

  function forget(job: Job): void {
    if (job.status === 'IN_QUEUE') leaveQueue(job);
    if (job.status === 'IN_PROGRESS') deleteLease().run(job.seq);
    held.delete(job.seq);
    deleteChunks().run(job.endpointId, job.seq);
    deleteJob().run(job.seq);
  }

  function leaveQueue(job: Job): void {
    deleteWaiting().run(job.endpointId, job.lowPriority ? 1 : 0, job.accountId, job.position, job.seq);
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

  function nobodyWaits(endpointId: string): boolean {
    if (empty.has(endpointId)) return true;
    const nobody = accountsWaiting(endpointId, 0).length === 0 && accountsWaiting(endpointId, 1).length === 0;
    if (nobody) empty.add(endpointId);
    return nobody;
  }

  /** Jobs that came in just now go out at once if nobody waits before them, and they are of one queue. */
  function takeFresh(endpointId: string, wanted: number): HeadJob[] {
    const [first] = fresh.values();
    if (first === undefined) return [];
    const { accountId, lowPriority } = first.job;
    const alike = [...fresh.values()].every(({ job }) => job.endpointId === endpointId && job.accountId === accountId && job.lowPriority === lowPriority);
    if (!alike || !nobodyWaits(endpointId)) {
      place();
      return [];
    }
    const taken = [...fresh.values()].slice(0, wanted).map(({ job, payloads: { request }, isWritten }) => ({ job, request, isWritten }));
    for (const { job } of taken) fresh.delete(job.seq);
    return taken;
  }

  /** Takes the places of up to `wanted` jobs out of the queue. */
  function leaveHead(endpointId: string, wanted: number): HeadJob[] {
    const found = takeFresh(endpointId, wanted);
    if (found.length > 0) return found;
    for (const lowPriority of [0, 1]) {
      const left = wanted - found.length;
      if (left <= 0) break;
      const queues = accountsWaiting(endpointId, lowPriority).map((accountId) => valuesOfAll(waitingOf.all(endpointId, lowPriority, accountId, left)));
      const shares = fairShare(queues.map(({ length }) => length), left);
      for (const [index, queue] of queues.entries()) {
        const head = queue.slice(0, shares[index]).map((values) => waitingJobFrom(endpointId, values));
        const last = head.at(-1)?.job;
        if (last !== undefined) deleteHead().run(endpointId, lowPriority, last.accountId, last.position, last.seq);
        found.push(...head.map((one) => ({ ...one, isWritten: true })));
      }
    }
    return found;
  }

  function begin({ job: before, request, isWritten }: HeadJob, { job }: JobChange): void {
    if (!isWritten) return note({ submitted: before, held: job, request });
    insertLease().run(...leaseValues(job));
    held.set(job.seq, job);
    count(job.endpointId, countMoves(before, job));
  }

  return {
    meetInOneTurn: true,

    submit: ({ job, payloads }, idempotency, untold = false) =>
      (untold ? runUntold : runOnOne)(() => {
        const isNew = job.seq > newest;
        newest = Math.max(newest, job.seq);
        if (untold && isNew && idempotency === undefined && payloads.request.length <= LARGEST_NOTED) {
          fresh.set(job.seq, { job, payloads, isWritten: false });
          return { job, created: true, bodyHash: null };
        }
        // Where it comes once more, all of the first time is there to be met.
        if (fresh.has(job.seq)) place();
        const noted = notes.get(job.seq);
        if (noted !== undefined) writeOut(noted);
        if (idempotency !== undefined) {
          const values = valuesOf(holderOfKey.get(job.endpointId, idempotency.key));
          const holder = values === undefined ? undefined : jobFromValues(values);
          if (values !== undefined && holder !== undefined && !isOver(holder, job.createdAt)) return { job: holder, created: holder.id === job.id, bodyHash: values[AFTER_JOB] as string };
          if (holder !== undefined) forget(holder);
        }
        const { changes } = insertJob().run(...insertedValues(job, idempotency, payloads.request));
        if (changes === 0) return { job, created: current(job.endpointId, job.seq)?.id === job.id, bodyHash: null };
        fresh.set(job.seq, { job, payloads, isWritten: true });
        count(job.endpointId, countMoves(undefined, job));
        return { job, created: true, bodyHash: idempotency?.bodyHash ?? null };
      }),

    take: (endpointId, terms) =>
      group.runLast(() => {
        const claims = terms.claims();
        return leaveHead(endpointId, claims.length).map((head, index): TakenJob => {
          const change = terms.begin(head.job, claims[index] as Claim);
          begin(head, change);
          return { job: change.job, request: head.request };
        });
      }),

    change: (endpointId, seq, next) => runOnOne(() => change(endpointId, { seq, next })),

    changeAll: (endpointId, asked) => group.run(() => asked.map((one) => change(endpointId, one)), asked.length),

    find: (endpointId, seq) =>
      look(() => {
        const values = valuesOf(selectWhole.get(seq, endpointId));
        return values === undefined ? undefined : wholeFrom(values);
      }),

    appendChunks: (endpointId, seq, next) =>
      runOnOne(() => {
        const job = current(endpointId, seq);
        if (job === undefined) return undefined;
        const last = select('select number, worker_number from job_chunks where endpoint_id = ? and seq = ? order by number desc limit 1').get(endpointId, seq);
        const end: StreamEnd = { number: Number(last?.['number'] ?? 0), workerNumber: Number(last?.['worker_number'] ?? 0) };
        const chunks = next(job, end);
        if (chunks === undefined) return undefined;
        const insert = writing('insert into job_chunks (endpoint_id, seq, number, worker_number, chunk) values (?, ?, ?, ?, ?)');
        chunks.forEach(({ text, workerNumber }, index) => insert().run(endpointId, seq, end.number + index + 1, workerNumber, text));
        return endAfter(end, chunks);
      }),

    chunks: (endpointId, seq, after, bytes) =>
      look(() => {
        const found: { number: number; text: string }[] = [];
        let size = 0;
        for (const row of select('select number, chunk from job_chunks where endpoint_id = ? and seq = ? and number > ? order by number').iterate(endpointId, seq, after)) {
          const text = row['chunk'] as string;
          size += text.length;
          if (found.length > 0 && size > bytes) break;
          found.push({ number: row['number'] as number, text });
        }
        return found;
      }),

    due: (now, limit) =>
      run(() => {
        const due = valuesOfAll(selectJobs(`select ${JOB} from job_leases as lease join jobs as job on job.seq = lease.seq where lease.due_at <= ? order by lease.due_at limit ?`).all(now, limit)).map(jobFromValues);
        const toLookAt = selectJobs(`select ${JOB} from ${JOBS_AND_LEASES} where job.look_at <= ? order by job.look_at limit ?`);
        for (let looks = 0; looks < MOST_LOOKS && due.length < limit; looks += 1) {
          const found = valuesOfAll(toLookAt.all(now, limit)).map(jobFromValues);
          const later = found.filter((job) => job.status === 'IN_PROGRESS' || job.dueAt > now);
          for (const job of later) lookAgain().run(Math.max(nextLook(job, now), now + 1), job.seq);
          due.push(...found.filter((job) => !later.includes(job)));
          if (later.length === 0 || found.length < limit) break;
        }
        return due;
      }),

    purge: (endpointId) =>
      run(() => {
        place();
        writing('delete from job_chunks where endpoint_id = ? and seq in (select seq from job_waiting where endpoint_id = ?)')().run(endpointId, endpointId);
        writing('delete from jobs where seq in (select seq from job_waiting where endpoint_id = ?)')().run(endpointId);
        const removed = Number(writing('delete from job_waiting where endpoint_id = ?')().run(endpointId).changes);
        count(endpointId, { queued: -removed, running: 0, completed: 0, failed: 0, retried: 0 });
        return removed;
      }),

    list: (endpointId, { status, before = Number.MAX_SAFE_INTEGER, rows, now }) =>
      look(() => {
        const waiting = status === 'IN_QUEUE' ? select('select count(*) as count from (select 1 from job_waiting where endpoint_id = ? limit ?)').get(endpointId, rows) : undefined;
        const { rows: table, jobs, only } = listed(status, Number(waiting?.['count']) < rows);
        const last = select(`select seq from ${table} where endpoint_id = ? and seq < ? order by seq desc limit 1 offset ?`).get(endpointId, before, rows - 1);
        const next = last?.['seq'] as number | undefined;
        const found = select(
          `select job.seq, ${PAYLOAD_BYTES} as bytes from ${jobs} where job.endpoint_id = ? and job.seq < ? and job.seq >= ? ${only} and (job.status = 'IN_QUEUE' or job.due_at > ?) order by job.seq desc`,
        ).all(endpointId, before, next ?? 0, now);
        return { jobs: found.map((row) => ({ seq: row['seq'] as number, bytes: row['bytes'] as number })), next };
      }),

    findAll: (endpointId, seqs) =>
      look(() => valuesOfAll([...seqs].sort((one, other) => other - one).map((seq) => selectWhole.get(seq, endpointId)).filter((values) => values !== undefined)).map(wholeFrom)),

    counts: (endpointId) =>
      look(() => {
        const sum = select(
          'select coalesce(sum(queued), 0) as "inQueue", coalesce(sum(running), 0) as "inProgress", coalesce(sum(completed), 0) as completed, coalesce(sum(failed), 0) as failed, coalesce(sum(retried), 0) as retried from job_counts where endpoint_id = ?',
        ).get(endpointId) as { inQueue: number; inProgress: number; completed: number; failed: number; retried: number };
        return { ...sum };
      }),

    waiting: (endpointId, queuedBefore, limit) =>
      look(() => {
        const found = select(
          `select count(*) as waiting, coalesce(sum(queued_at <= ?), 0) as late from (select queued_at from job_waiting where endpoint_id = ? and low_priority = 0 order by account_id, position limit ?)`,
        ).get(queuedBefore, endpointId, limit) as { waiting: number; late: number };
        return { ...found };
      }),

    ahead: (job, limit) =>
      look(() => {
        const { before } = select(
          `select count(*) as before from (select 1 from job_waiting where endpoint_id = ? and (low_priority < ? or (low_priority = ? and position < ?)) limit ?)`,
        ).get(job.endpointId, job.lowPriority ? 1 : 0, job.lowPriority ? 1 : 0, job.position, limit) as { before: number };
        return before;
      }),

    running: (endpointId) =>
      look(() => {
        const of = `select ${JOB} from job_leases as lease join jobs as job on job.seq = lease.seq`;
        const found = endpointId === undefined ? selectJobs(of).all() : selectJobs(`${of} where lease.endpoint_id = ?`).all(endpointId);
        return valuesOfAll(found).map(jobFromValues);
      }),

    removeEndpoint: (endpointId) =>
      run(() => {
        place();
        moves.delete(endpointId);
        empty.delete(endpointId);
        for (const [seq, job] of held) if (job.endpointId === endpointId) held.delete(seq);
        for (const table of ['jobs', 'job_waiting', 'job_leases', 'job_chunks', 'job_counts', 'job_workers', 'webhook_deliveries']) writing(`delete from ${table} where endpoint_id = ?`)().run(endpointId);
      }),

    noteWorkers: (workers) =>
      run(() => {
        const save = writing('insert or replace into job_workers (endpoint_id, worker_id, seen_at, busy, unhealthy) values (?, ?, ?, ?, ?)');
        for (const worker of workers) save().run(worker.endpointId, worker.workerId, worker.seenAt, worker.busy, worker.unhealthy);
      }),

    workers: (endpointId, seenSince) =>
      look(() => (select('select * from job_workers where endpoint_id = ? and seen_at >= ?').all(endpointId, seenSince) as Row[]).map(workerFromRow)),

    dueDeliveries: (now, limit) =>
      look(() => (select(`select * from webhook_deliveries where next_at <= ? order by next_at limit ?`).all(now, limit) as Row[]).map(deliveryFromRow)),

    saveDelivery: (delivery: Delivery) =>
      run(() => {
        saveDelivery().run(...deliveryValues(delivery));
      }),

    changeDelivery: (seen, next) =>
      run(() => {
        const columns = assign(DELIVERY_COLUMNS);
        const changed = writing(`update webhook_deliveries set ${columns} where id = ? and endpoint_id = ? and next_at is ?`)().run(...deliveryValues(next), seen.id, seen.endpointId, seen.nextAt);
        return changed.changes > 0;
      }),

    forgetDeliveries: (before) =>
      run(() => {
        writing('delete from webhook_deliveries where next_at is null and updated_at < ?')().run(before);
      }),

    deliveries: (endpointId, { jobId, limit }) =>
      look(() => {
        const only = jobId === undefined ? '' : 'and job_id = ?';
        const rows = select(`select * from webhook_deliveries where endpoint_id = ? ${only} order by created_at desc, id desc limit ?`).all(...[endpointId, ...(jobId === undefined ? [] : [jobId]), limit]) as Row[];
        return rows.map(deliveryFromRow);
      }),

    findDelivery: (endpointId, id) =>
      look(() => {
        const row = select('select * from webhook_deliveries where endpoint_id = ? and id = ?').get(endpointId, id) as Row | undefined;
        return row === undefined ? undefined : deliveryFromRow(row);
      }),
  };
}

/** A job that ends and goes in one move still counts as ended. */
function endedOrGone(job: Job): Job | undefined {
  return job.status === 'IN_QUEUE' || job.status === 'IN_PROGRESS' ? undefined : job;
}

function wholeFrom(values: readonly Value[]): WholeJob {
  return { job: jobFromValues(values), payloads: { request: values[AFTER_JOB] as string, output: values[AFTER_JOB + 1] as string | null, error: values[AFTER_JOB + 2] as string | null } };
}

/** The types know rows as objects alone; a statement that answers arrays answers these. */
function valuesOf(row: unknown): Value[] | undefined {
  return row as Value[] | undefined;
}

function valuesOfAll(rows: unknown): Value[][] {
  return rows as Value[][];
}

function marks(count: number): string {
  return Array.from({ length: count }, () => '?').join(', ');
}

function assign(columns: readonly string[]): string {
  return columns.map((column) => `${column} = ?`).join(', ');
}
