import type { DatabaseSync } from 'node:sqlite';
import { ChurnMap } from '../../support/churn-map.ts';
import { MAX_DUE_SCANS, affectedRows } from '../job-row-changes.ts';
import {
  isPastRetention,
  positionAfter,
  type ChunkPosition,
  type TakenJob,
  type Claim,
} from '../../domain/job-records.ts';
import type { Job, JobChange, Payloads, JobWithPayloads } from '../../domain/job-records.ts';
import {
  JOB_SELECT_LENGTH,
  UPDATABLE_COLUMNS,
  updatableValues,
  deliveryValues,
  IS_TERMINAL,
  INSERTED_COLUMNS,
  insertedValues,
  JOB_SELECT,
  jobFromValues,
  JOBS_WITH_LEASES,
  LEASE_COLUMNS,
  leaseValues,
  nextCheckAt,
} from '../tables/job-rows.ts';
import { countDeltas } from '../job-store.ts';
import type { JobChangeRequest, JobChangeResult, JobStore } from '../job-store.ts';
import { JobCounters } from './job-counts.ts';
import { jobDeliveries, SAVE_DELIVERY } from './job-deliveries.ts';
import type { GroupCommit } from './group-commit.ts';
import { deleteInBatches } from './delete-in-batches.ts';
import { jobReads } from './job-reads.ts';
import { MAX_INLINE_CHARS, InlineJobs, asSubmitted } from './inline-jobs.ts';
import type { InlineResult, InlineJob } from './inline-jobs.ts';
import { INSERT_JOB, insertJobValues } from './insert-job-sql.ts';
import { WaitingJobs } from './waiting-jobs.ts';
import { assignPlaceholders, placeholders, Statements } from './statements.ts';

/** As many ended jobs may have a note. It is cheaper to write a few jobs out together than each with its own end. */
const MAX_ENDED_INLINE_JOBS = 16;

/** Jobs that are over, as of now (twice), up to a limit. */
const EXPIRED_JOBS = `from jobs where look_at <= ? and due_at <= ? and ${IS_TERMINAL} order by look_at, seq limit ?`;

interface NewJob extends JobWithPayloads {
  /** Where it is not, it may go out with a note. */
  isWritten: boolean;
}

/** A job that leaves the queue, or was never in it. */
interface DequeuedJob extends TakenJob {
  isWritten: boolean;
}

/** The queue on SQLite. Changes run in a group commit; looks run at once, between two of them. */
export function sqliteJobStore(connection: DatabaseSync, group: GroupCommit): JobStore {
  const statements = new Statements(connection, group);
  const insertJob = statements.write(INSERT_JOB);
  const insertEnded = statements.write(
    `insert into jobs (${INSERTED_COLUMNS.join(', ')}, output, error) values (${placeholders(INSERTED_COLUMNS.length + 2)})`,
  );
  const insertLease = statements.write(
    `insert into job_leases (${LEASE_COLUMNS.join(', ')}) values (${placeholders(LEASE_COLUMNS.length)})`,
  );
  const holderOfKey = statements.selectArrays(
    `select ${JOB_SELECT}, job.body_hash from ${JOBS_WITH_LEASES} where job.endpoint_id = ? and job.idempotency_key = ?`,
  );
  const selectJob = statements.selectArrays(
    `select ${JOB_SELECT} from ${JOBS_WITH_LEASES} where job.seq = ? and job.endpoint_id = ?`,
  );
  const selectPayloads = statements.select('select request, output, error from jobs where seq = ?');
  const updateJob = statements.write(
    `update jobs set ${assignPlaceholders(UPDATABLE_COLUMNS)} where seq = ?`,
  );
  const updateOutput = statements.write('update jobs set output = ? where seq = ?');
  const updateError = statements.write('update jobs set error = ? where seq = ?');
  const updateEnd = statements.write(
    `update jobs set ${assignPlaceholders(UPDATABLE_COLUMNS)}, output = ?, error = ? where seq = ?`,
  );
  const lookEarlier = statements.write('update jobs set look_at = min(look_at, ?) where seq = ?');
  const lookAgain = statements.write('update jobs set look_at = ? where seq = ?');
  const renewLease = statements.write('update job_leases set due_at = ? where seq = ?');
  const deleteLease = statements.write('delete from job_leases where seq = ?');
  const deleteJob = statements.write('delete from jobs where seq = ?');
  const deleteChunks = statements.write('delete from job_chunks where endpoint_id = ? and seq = ?');
  const firstOver = statements.select(`select 1 ${EXPIRED_JOBS}`);
  const deleteChunksOfOver = statements.write(
    `delete from job_chunks where (endpoint_id, seq) in (select endpoint_id, seq ${EXPIRED_JOBS})`,
  );
  const deleteOver = statements.write(`delete from jobs where seq in (select seq ${EXPIRED_JOBS})`);
  const saveDelivery = statements.write(SAVE_DELIVERY);

  /** Jobs in workers' hands, as they were last written: the next thing that happens to them needs no look. Whoever is not here is looked for. */
  const held = new ChurnMap<number, Job>();
  /** Jobs that came in with this group. Where a worker waits for them they never enter the queue. */
  const fresh = new ChurnMap<number, NewJob>();
  /** Jobs that went straight to a worker and have a note instead of rows. */
  const notes = new InlineJobs(statements);
  const places = new WaitingJobs(statements);
  const counts = new JobCounters(statements);
  /** The highest number that a job has had: whoever has a higher one is new, without a look. */
  let newest = Number(
    statements
      .select(
        'select max((select coalesce(max(seq), 0) from jobs), (select coalesce(max(seq), 0) from job_notes)) as seq',
      )
      .get()?.['seq'],
  );
  group.hooks = {
    beforeCommit: () => {
      if (notes.ended > MAX_ENDED_INLINE_JOBS)
        for (const noted of notes.all()) if (noted.ended !== undefined) writeOut(noted);
      place();
      counts.flush();
      notes.write(!group.hasWritten);
    },
    afterCommit: () => notes.committed(),
    afterRollback: () => {
      notes.undo();
      places.discard();
      counts.discard();
      held.clear();
      fresh.clear();
    },
    get hasInlineJobs() {
      return notes.size > 0;
    },
    flushInlineJobs: writeOutAll,
  };
  const runOnOne = <T>(work: () => T): Promise<T> => group.run(work);
  const runUntold = <T>(work: () => T): Promise<T> => group.runUnsynced(work);
  /** For work that looks at all jobs. */
  const run = <T>(work: () => T): Promise<T> =>
    group.run(() => {
      writeOutAll();
      return work();
    });

  /** The rows that a noted job would have. */
  function writeOut(noted: InlineJob): void {
    const { held: job, request, ended } = noted;
    notes.remove(job.seq);
    counts.add(job.endpointId, countDeltas(undefined, ended?.job ?? job));
    if (ended !== undefined)
      return void insertEnded().run(
        ...insertedValues(ended.job, undefined, request),
        ended.output,
        ended.error,
      );
    insertJob().run(...insertJobValues(asSubmitted(noted), undefined, request));
    insertLease().run(...leaseValues(job));
    held.set(job.seq, job);
  }

  function writeOutAll(): void {
    for (const noted of notes.all()) writeOut(noted);
  }

  /** Whoever came in and was not taken waits. */
  function place(): void {
    if (fresh.size === 0) return;
    for (const { job, payloads, isWritten } of fresh.values()) {
      if (isWritten) continue;
      insertJob().run(...insertJobValues(job, undefined, payloads.request));
      counts.add(job.endpointId, countDeltas(undefined, job));
    }
    places.addAll(Array.from(fresh.values(), ({ job }) => job));
    fresh.clear();
  }

  function current(endpointId: string, seq: number): Job | undefined {
    const noted = notes.get(seq);
    if (noted !== undefined) writeOut(noted);
    const known = held.get(seq);
    if (known?.endpointId === endpointId) return known;
    const values = selectJob.get(seq, endpointId);
    return values === undefined ? undefined : jobFromValues(values);
  }

  function write(before: Job, change: JobChange): void {
    const { job, output, error } = change;
    const { seq } = job;
    if (change.delivery !== undefined) {
      const kept = selectPayloads.get(seq) as unknown as Payloads;
      const payloads = {
        request: kept.request,
        output: output === undefined ? kept.output : output,
        error: error === undefined ? kept.error : error,
      };
      saveDelivery().run(...deliveryValues(change.delivery(payloads)));
    }
    counts.add(job.endpointId, countDeltas(before, change.remove === true ? endedOrGone(job) : job));
    if (change.remove === true) return forget(before);
    if (change.clearChunks === true) deleteChunks().run(job.endpointId, seq);
    const { waiting, lease, row, recheck: looks } = affectedRows(before, change);
    if (waiting === 'leaves') places.remove(before);
    else if (waiting === 'enters') places.add(job);
    if (lease === 'ends') deleteLease().run(seq);
    else if (lease === 'renewed') renewLease().run(job.dueAt, seq);
    if (job.status === 'IN_PROGRESS') held.set(seq, job);
    else held.delete(seq);
    if (!row) return;
    if (output !== undefined && error !== undefined)
      updateEnd().run(...updatableValues(job), output, error, seq);
    else {
      updateJob().run(...updatableValues(job), seq);
      if (output !== undefined) updateOutput().run(output, seq);
      if (error !== undefined) updateError().run(error, seq);
    }
    if (looks) lookEarlier().run(job.ttlAt, seq);
  }

  function change(asked: JobChangeRequest): JobChangeResult | undefined {
    const { endpointId, seq } = asked;
    if (fresh.has(seq)) place();
    const noted = notes.get(seq);
    const isHeld = noted !== undefined && noted.ended === undefined;
    const before = isHeld ? noted.held : current(endpointId, seq);
    if (before?.endpointId !== endpointId) return undefined;
    const made = asked.next(before);
    if (made === undefined) return { before, after: before, changed: false };
    const ended = isHeld ? plainResult(made) : undefined;
    if (isHeld && ended !== undefined) {
      const whole = { ...noted, ended };
      if ((ended.output?.length ?? 0) + (ended.error?.length ?? 0) <= MAX_INLINE_CHARS) notes.set(whole);
      else writeOut(whole);
    } else {
      if (isHeld) writeOut(noted);
      write(before, made);
    }
    return { before, after: made.job, changed: true };
  }

  function forget(job: Job): void {
    if (job.status === 'IN_QUEUE') places.remove(job);
    if (job.status === 'IN_PROGRESS') deleteLease().run(job.seq);
    held.delete(job.seq);
    deleteChunks().run(job.endpointId, job.seq);
    deleteJob().run(job.seq);
  }

  /** Jobs that came in just now go out at once if nobody waits before them, and they are of one queue. */
  function takeFresh(endpointId: string, wanted: number): DequeuedJob[] {
    const [first] = fresh.values();
    if (first === undefined) return [];
    const { accountId, lowPriority } = first.job;
    const alike = [...fresh.values()].every(
      ({ job }) =>
        job.endpointId === endpointId && job.accountId === accountId && job.lowPriority === lowPriority,
    );
    if (!alike || !places.isEmpty(endpointId)) {
      place();
      return [];
    }
    const taken = [...fresh.values()]
      .slice(0, wanted)
      .map(({ job, payloads: { request }, isWritten }) => ({ job, request, isWritten }));
    for (const { job } of taken) fresh.delete(job.seq);
    return taken;
  }

  function leaveHead(endpointId: string, wanted: number): DequeuedJob[] {
    const found = takeFresh(endpointId, wanted);
    return found.length > 0
      ? found
      : places.takeHead(endpointId, wanted).map((taken) => ({ ...taken, isWritten: true }));
  }

  function begin({ job: before, request, isWritten }: DequeuedJob, { job }: JobChange): void {
    if (!isWritten) return notes.set({ held: job, request });
    insertLease().run(...leaseValues(job));
    held.set(job.seq, job);
    counts.add(job.endpointId, countDeltas(before, job));
  }

  return {
    ...jobReads(statements, group, notes),
    ...jobDeliveries(statements, group),
    sameTurnTakes: { at: () => true },

    submit: ({ job, payloads }, idempotency, untold = false) =>
      (untold ? runUntold : runOnOne)(() => {
        const isNew = job.seq > newest;
        newest = Math.max(newest, job.seq);
        if (untold && isNew && idempotency === undefined && payloads.request.length <= MAX_INLINE_CHARS) {
          fresh.set(job.seq, { job, payloads, isWritten: false });
          return { job, created: true, seenByTakes: true, bodyHash: null };
        }
        // Where it comes once more, all of the first time is there to be met.
        if (fresh.has(job.seq)) place();
        const noted = notes.get(job.seq);
        if (noted !== undefined) writeOut(noted);
        if (idempotency !== undefined) {
          const values = holderOfKey.get(job.endpointId, idempotency.key);
          const holder = values === undefined ? undefined : jobFromValues(values);
          if (values !== undefined && holder !== undefined && !isPastRetention(holder, job.createdAt))
            return {
              job: holder,
              created: holder.id === job.id,
              seenByTakes: false,
              bodyHash: values[JOB_SELECT_LENGTH] as string,
            };
          if (holder !== undefined) forget(holder);
        }
        const { changes } = insertJob().run(...insertJobValues(job, idempotency, payloads.request));
        if (changes === 0)
          return {
            job,
            created: current(job.endpointId, job.seq)?.id === job.id,
            seenByTakes: false,
            bodyHash: null,
          };
        fresh.set(job.seq, { job, payloads, isWritten: true });
        counts.add(job.endpointId, countDeltas(undefined, job));
        return { job, created: true, seenByTakes: true, bodyHash: idempotency?.bodyHash ?? null };
      }),

    take: (endpointId, terms) =>
      group.runLast(() => {
        const claims = terms.claims();
        return leaveHead(endpointId, claims.length).map((head, index): TakenJob => {
          const change = terms.startAttempt(head.job, claims[index] as Claim);
          begin(head, change);
          return { job: change.job, request: head.request };
        });
      }),

    change: (endpointId, seq, next) => runOnOne(() => change({ endpointId, seq, next })),

    changeAll: (asked) => group.run(() => asked.map(change), asked.length),

    appendChunks: (endpointId, seq, next) =>
      runOnOne(() => {
        const job = current(endpointId, seq);
        if (job === undefined) return undefined;
        const last = statements
          .select(
            'select number, worker_number from job_chunks where endpoint_id = ? and seq = ? order by number desc limit 1',
          )
          .get(endpointId, seq);
        const end: ChunkPosition = {
          number: Number(last?.['number'] ?? 0),
          workerNumber: Number(last?.['worker_number'] ?? 0),
        };
        const chunks = next(job, end);
        if (chunks === undefined) return undefined;
        const insert = statements.write(
          'insert into job_chunks (endpoint_id, seq, number, worker_number, chunk) values (?, ?, ?, ?, ?)',
        );
        chunks.forEach(({ text, workerNumber }, index) =>
          insert().run(endpointId, seq, end.number + index + 1, workerNumber, text),
        );
        return positionAfter(end, chunks);
      }),

    listDue: (now, limit) =>
      run(() => {
        const due = statements
          .selectArrays(
            `select ${JOB_SELECT} from job_leases as lease join jobs as job on job.seq = lease.seq where lease.due_at <= ? order by lease.due_at limit ?`,
          )
          .all(now, limit)
          .map(jobFromValues);
        const toLookAt = statements.selectArrays(
          `select ${JOB_SELECT} from ${JOBS_WITH_LEASES} where job.look_at <= ? order by job.look_at limit ?`,
        );
        for (let looks = 0; looks < MAX_DUE_SCANS && due.length < limit; looks += 1) {
          const found = toLookAt.all(now, limit).map(jobFromValues);
          const later = found.filter((job) => job.status === 'IN_PROGRESS' || job.dueAt > now);
          for (const job of later) lookAgain().run(Math.max(nextCheckAt(job, now), now + 1), job.seq);
          due.push(...found.filter((job) => !later.includes(job) && !isPastRetention(job, now)));
          if (later.length === 0 || found.length < limit) break;
        }
        return due;
      }),

    deleteExpired: (now, limit) =>
      runUntold(() => {
        writeOutAll();
        if (firstOver.get(now, now, 1) === undefined) return 0;
        deleteChunksOfOver().run(now, now, limit);
        return Number(deleteOver().run(now, now, limit).changes);
      }),

    purge: (endpointId) => {
      let until: number | undefined;
      return deleteInBatches((most) =>
        run(() => {
          place();
          // Whoever comes in meanwhile stays.
          until ??= newest;
          const gone = places.removeUpTo(endpointId, until, most);
          const seqs = JSON.stringify(gone);
          statements
            .write(
              'delete from job_chunks where endpoint_id = ? and seq in (select value from json_each(?))',
            )()
            .run(endpointId, seqs);
          statements.write('delete from jobs where seq in (select value from json_each(?))')().run(seqs);
          counts.add(endpointId, { queued: -gone.length, running: 0, completed: 0, failed: 0, retried: 0 });
          return gone.length;
        }),
      );
    },

    highestSeq: () => Promise.resolve(newest),

    removeEndpoint: (endpointId) =>
      run(() => {
        place();
        counts.deleteEndpoint(endpointId);
        places.deleteEndpoint(endpointId);
        for (const [seq, job] of held) if (job.endpointId === endpointId) held.delete(seq);
        for (const table of [
          'jobs',
          'job_waiting',
          'job_leases',
          'job_chunks',
          'job_counts',
          'job_workers',
          'webhook_deliveries',
        ])
          statements.write(`delete from ${table} where endpoint_id = ?`)().run(endpointId);
      }),

    saveHeartbeats: (workers) =>
      runOnOne(() => {
        const save = statements.write(
          'insert or replace into job_workers (endpoint_id, worker_id, seen_at, busy, unhealthy) values (?, ?, ?, ?, ?)',
        );
        for (const worker of workers)
          save().run(worker.endpointId, worker.workerId, worker.seenAt, worker.busy, worker.unhealthy);
      }),

    compact: (seenSince) =>
      runOnOne(() => {
        statements.write('delete from job_workers where seen_at < ?')().run(seenSince);
      }),
  };
}

/** An end that brings all there is to know of it; undefined where there is more to it. */
function plainResult({ job, output, error, delivery, remove }: JobChange): InlineResult | undefined {
  return job.endedAt === null ||
    output === undefined ||
    error === undefined ||
    delivery !== undefined ||
    remove === true
    ? undefined
    : { job, output, error };
}

/** A job that ends and goes in one move still counts as ended. */
function endedOrGone(job: Job): Job | undefined {
  return job.status === 'IN_QUEUE' || job.status === 'IN_PROGRESS' ? undefined : job;
}
