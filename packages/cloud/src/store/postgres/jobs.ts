import type { Pool } from 'pg';
import { CLOCKS_APART_MS } from '../../support/clock.ts';
import { MOST_LOOKS } from '../job-moves.ts';
import { isOver } from '../job-records.ts';
import type { WholeJob } from '../job-records.ts';
import { DELIVERY_COLUMNS, deliveryFromRow, deliveryValues, ENTRY_COLUMNS, entryFromRow, HAS_ENDED, JOB, jobFromValues, JOBS_AND_LEASES, listed, nextLook, PAYLOAD_BYTES, PAYLOADS, thatFit } from '../job-rows.ts';
import { endAfter } from '../jobs.ts';
import type { AskedChange, Changed, JobStore, StreamEnd, Submitted } from '../jobs.ts';
import type { Row, Value } from '../sql.ts';
import { workerFromRow } from '../worker-rows.ts';
import { columnsOf, unnest } from './arrays.ts';
import { Batch } from './batch.ts';
import { AFTER_SEEN, Bundled, openBundles, SEEN, seenJob } from './bundles.ts';
import type { WhichBundles } from './bundles.ts';
import { applyChanges, KEY, keyOf, SAVE_DELIVERY } from './changes.ts';
import { ADD_COUNTS, foldCounts } from './counts.ts';
import { inTransaction, retried, translated } from './database.ts';
import { HandedOut, tryEnds } from './finish.ts';
import { positionOf, WAITING } from './places.ts';
import { Submissions } from './submissions.ts';
import type { Submission } from './submissions.ts';

/** Larger ones gain nothing and hold others up. */
const MOST_SUBMITTED = 500;
/** Where more have come than fit into this, ends fall behind takes: what a commit costs apart from its jobs counts then. */
const MOST_CHANGED = 2_000;

const LOOKED_AT = [...KEY, 'look_at'];
const NOTED = ['endpoint_id', 'worker_id', 'seen_at', 'busy', 'unhealthy'];

/** The queue on PostgreSQL. Each kind of call has a lane of its own, with one commit on its way at a time. */
export function postgresJobs(pool: Pool, lanes: Pool, server: string): JobStore {
  const query = async (text: string, values: unknown[]): Promise<Row[]> => (await translated(pool.query<Row>(text, values))).rows;
  /** Rows that begin with a job, as arrays. */
  const queryJobs = async (text: string, values: unknown[]): Promise<Value[][]> => (await translated(pool.query<Value[]>({ text, values, rowMode: 'array' }))).rows;

  const handedOut = new HandedOut();
  const open = async (which: WhichBundles): Promise<void> => handedOut.opened(await retried(() => openBundles(pool, which)));
  /** Opens the bundles in which jobs are that it meets, and begins anew. */
  const opening = async <T>(work: () => Promise<T>): Promise<T> => {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (!(error instanceof Bundled)) throw error;
        await open(error);
      }
    }
  };

  const submissions = new Submissions(lanes, server);
  const insert = async (items: readonly Submission[]): Promise<Submitted[]> => {
    const added = await submissions.insert(items);
    return Promise.all(items.map(async (item) => {
      const lease = added.get(keyOf(item.whole.job.endpointId, item.whole.job.seq));
      return lease === undefined ? existing(item) : submitted(item, lease !== null);
    }));
  };
  const submits = new Batch(insert, MOST_SUBMITTED);

  const submitted = ({ whole: { job }, idempotency }: Submission, met: boolean): Submitted => ({ job, created: true, met, bodyHash: idempotency?.bodyHash ?? null });
  /** It was not added: the idempotency key is taken, or another server counted to the same number at the same time. */
  const existing = async (item: Submission): Promise<Submitted> => {
    const { whole: { job }, idempotency } = item;
    const held = idempotency === undefined ? undefined : await opening(async () => {
      const [values] = await queryJobs(`select ${SEEN}, job.body_hash from ${JOBS_AND_LEASES} where job.endpoint_id = $1 and job.idempotency_key = $2`, [job.endpointId, idempotency.key]);
      return values === undefined ? undefined : { holder: seenJob(values).job, bodyHash: values[AFTER_SEEN] as string };
    });
    if (held !== undefined) {
      const { holder, bodyHash } = held;
      if (isOver(holder, job.createdAt)) {
        await changes.add({ endpointId: holder.endpointId, seq: holder.seq, next: (current) => (isOver(current, job.createdAt) ? { job: current, remove: true } : undefined) });
        const [added] = await insert([item]);
        return added as Submitted;
      }
      if (holder.id !== job.id) return { job: holder, created: false, met: false, bodyHash };
    }
    const [holder] = await query('select id from jobs where endpoint_id = $1 and seq = $2', [job.endpointId, job.seq]);
    return { job, created: holder?.['id'] === job.id, met: false, bodyHash: null };
  };

  /** Ends that were kept with others that could not be: those come again. */
  const ended = new WeakMap<AskedChange, Changed>();
  const changeRest = async (items: readonly AskedChange[], results: (Changed | undefined)[]): Promise<void> => {
    const rest = items.filter((_, index) => results[index] === undefined);
    const changed = await opening(() => retried(() => inTransaction(pool, (client) => applyChanges(client, server, rest))));
    for (const done of changed) {
      if (done?.after.status === 'IN_PROGRESS') handedOut.set(done.after);
      else if (done !== undefined) handedOut.delete(done.after.endpointId, done.after.seq);
    }
    for (const [index, done] of results.entries()) if (done === undefined) results[index] = changed.shift();
  };
  const changes = new Batch<AskedChange, Changed | undefined>(async (items) => {
    const results = await tryEnds(lanes, server, handedOut, items, ended);
    try {
      if (results.includes(undefined)) await changeRest(items, results);
    } catch (error) {
      for (const [index, item] of items.entries()) {
        const done = results[index];
        if (done !== undefined) ended.set(item, done);
      }
      throw error;
    }
    return results;
  }, MOST_CHANGED);

  return {
    meets: { at: (endpointId) => submissions.meetAt(endpointId) },

    submit: (whole, idempotency) => {
      const item: Submission = { whole, idempotency };
      submissions.expect(item);
      return submits.add(item);
    },

    take: async (endpointId, terms) => {
      const { taken, bundle: id } = await submissions.take(endpointId, terms);
      const bundle = id === undefined ? undefined : { endpointId, id, left: taken.length, isOpen: false };
      for (const { job } of taken) handedOut.set(job, bundle);
      return taken;
    },

    change: (endpointId, seq, next) => changes.add({ endpointId, seq, next }),

    changeAll: (asked) => changes.addAll(asked),

    find: (endpointId, seq) =>
      opening(async () => {
        const [values] = await queryJobs(`select ${SEEN}, ${PAYLOADS} from ${JOBS_AND_LEASES} where job.endpoint_id = $1 and job.seq = $2`, [endpointId, seq]);
        return values === undefined ? undefined : wholeFrom(values);
      }),

    appendChunks: (endpointId, seq, next) =>
      opening(() => inTransaction(pool, async (client) => {
        // Two servers that hear the same worker come one after the other here.
        await client.query('select 1 from jobs where endpoint_id = $1 and seq = $2 for update', [endpointId, seq]);
        const { rows: [values] } = await client.query<Value[]>({
          text: `select ${SEEN}, last.number, last.worker_number from ${JOBS_AND_LEASES}
            left join lateral (select number, worker_number from job_chunks where endpoint_id = $1 and seq = $2 order by number desc limit 1) as last on true where job.endpoint_id = $1 and job.seq = $2`,
          values: [endpointId, seq],
          rowMode: 'array',
        });
        if (values === undefined) return undefined;
        const end: StreamEnd = { number: Number(values[AFTER_SEEN] ?? 0), workerNumber: Number(values[AFTER_SEEN + 1] ?? 0) };
        const chunks = next(seenJob(values).job, end);
        if (chunks === undefined) return undefined;
        if (chunks.length > 0) {
          await client.query(
            'insert into job_chunks (endpoint_id, seq, number, worker_number, chunk) select $1, $2, $5::int + given.place, given.worker_number, given.chunk from unnest($3::text[], $4::int[]) with ordinality as given (chunk, worker_number, place)',
            [endpointId, seq, chunks.map(({ text }) => text), chunks.map(({ workerNumber }) => workerNumber), end.number],
          );
        }
        return endAfter(end, chunks);
      })),

    chunks: async (endpointId, seq, after, bytes) => {
      const rows = await query(
        `select number, chunk from (select number, chunk, sum(length(chunk)) over (order by number) - length(chunk) as before from job_chunks where endpoint_id = $1 and seq = $2 and number > $3) as sized
          where before = 0 or before + length(chunk) <= $4 order by number`,
        [endpointId, seq, after, bytes],
      );
      return rows.map((row) => ({ number: row['number'] as number, text: row['chunk'] as string }));
    },

    due: async (now, limit) => {
      await open({ dueBy: now });
      const due = (await queryJobs(`select ${JOB} from job_leases as lease join jobs as job on job.endpoint_id = lease.endpoint_id and job.seq = lease.seq where lease.due_at <= $1 order by lease.due_at limit $2`, [now, limit])).map(jobFromValues);
      for (let looks = 0; looks < MOST_LOOKS && due.length < limit; looks += 1) {
        const found = (await queryJobs(`select ${JOB} from ${JOBS_AND_LEASES} where job.look_at <= $1 order by job.look_at limit $2`, [now, limit])).map(jobFromValues);
        const later = found.filter((job) => job.status === 'IN_PROGRESS' || job.dueAt > now);
        due.push(...found.filter((job) => !later.includes(job) && !isOver(job, now)));
        if (later.length > 0) {
          // What another server just changes is left to it.
          await query(
            // Somebody may have made its time to live shorter since.
            `update jobs set look_at = greatest(least(given.look_at, jobs.ttl_at), $4::bigint) from (select locked.* from ${unnest(LOOKED_AT)}, lateral (select given.*, 1 as found from jobs where endpoint_id = given.endpoint_id and seq = given.seq for update skip locked) as locked) as given
              where jobs.endpoint_id = given.endpoint_id and jobs.seq = given.seq`,
            [...columnsOf(later.map((job) => [job.endpointId, job.seq, nextLook(job, now)]), LOOKED_AT), now + 1],
          );
        }
        if (later.length === 0 || found.length < limit) break;
      }
      return due;
    },

    forgetEnded: async (now, limit) => {
      const [row] = await query(
        // What another server just forgets is left to it.
        `with gone as materialized (select endpoint_id, seq from jobs where look_at <= $1 and due_at <= $1 and ${HAS_ENDED} order by look_at limit $2 for update skip locked),
          removed as (delete from jobs using gone where jobs.endpoint_id = gone.endpoint_id and jobs.seq = gone.seq),
          chunks as (delete from job_chunks using gone where job_chunks.endpoint_id = gone.endpoint_id and job_chunks.seq = gone.seq)
          select count(*) as removed from gone`,
        [now, limit],
      );
      return Number(row?.['removed']);
    },

    purge: (endpointId) =>
      retried(async () => {
        const [row] = await query(
          // Locked in the order in which changes lock them too, so that neither waits for the other. Whoever was taken meanwhile has no place any more.
          `with locked as materialized (select job.seq from ${WAITING} as waiting join jobs as job on job.endpoint_id = waiting.endpoint_id and job.seq = waiting.seq
              where waiting.endpoint_id = $1 order by job.seq for update of job),
            emptied as (delete from job_places where endpoint_id = $1 and (select count(*) from locked) >= 0 returning seqs[gone + 1:] as seqs),
            gone as materialized (select unnest(seqs) as seq from emptied),
            removed as (delete from jobs using gone where jobs.endpoint_id = $1 and jobs.seq = gone.seq),
            chunks as (delete from job_chunks where endpoint_id = $1 and seq in (select seq from gone)),
            counted as (${ADD_COUNTS(`select $1, $2 || ' purge', -count(*), 0, 0, 0, 0 from gone`)})
            select count(*) as removed from gone`,
          [endpointId, server],
        );
        return Number(row?.['removed']);
      }),

    list: async (endpointId, { status, before = Number.MAX_SAFE_INTEGER, rows, now }) => {
      if (status === 'IN_QUEUE' || status === 'IN_PROGRESS') await open({ endpointId });
      const [waiting] = status === 'IN_QUEUE' ? await query(`select count(*) as count from (select 1 from ${WAITING} as waiting where endpoint_id = $1 limit $2) as few`, [endpointId, rows]) : [];
      const { rows: table, jobs, only } = listed(status, Number(waiting?.['count']) < rows, WAITING);
      const [last] = await query(`select seq from ${table} where endpoint_id = $1 and seq < $2 order by seq desc limit 1 offset $3`, [endpointId, before, rows - 1]);
      const next = last?.['seq'] as number | undefined;
      const found = await query(
        `select job.seq, ${PAYLOAD_BYTES} as bytes from ${jobs} where job.endpoint_id = $1 and job.seq < $2 and job.seq >= $3 ${only} and (job.status = 'IN_QUEUE' or job.due_at > $4) order by job.seq desc`,
        [endpointId, before, next ?? 0, now],
      );
      return { jobs: found.map((row) => ({ seq: row['seq'] as number, bytes: row['bytes'] as number })), next };
    },

    findAll: (endpointId, seqs) =>
      opening(async () => (await queryJobs(`select ${SEEN}, ${PAYLOADS} from ${JOBS_AND_LEASES} where job.endpoint_id = $1 and job.seq = any($2::bigint[]) order by job.seq desc`, [endpointId, seqs])).map(wholeFrom)),

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
        `select least(coalesce(sum(count), 0), $3) as waiting, least(coalesce(sum(count) filter (where queued_at <= $2), 0), $3) as late
          from (select queued_at, cardinality(seqs) - gone as count from job_places where endpoint_id = $1 and low_priority = 0 order by account_id, position limit $3) as heads`,
        [endpointId, queuedBefore, limit],
      );
      return { waiting: Number(row?.['waiting']), late: Number(row?.['late']) };
    },

    ahead: async (job, limit) => {
      const [row] = await query(
        `select least(coalesce(sum(count), 0), $4) as before from (
          select case when low_priority < $2 or seqs[cardinality(seqs)] < $3 then cardinality(seqs) - gone else (select count(*) from unnest(seqs[gone + 1:]) as before (seq) where ${positionOf('before.seq', 'job_places.')} < $3) end as count
          from job_places where endpoint_id = $1 and (low_priority < $2 or (low_priority = $2 and position < $3)) limit $4) as places`,
        [job.endpointId, job.lowPriority ? 1 : 0, job.position, limit],
      );
      return Number(row?.['before']);
    },

    newest: async () => {
      // From endpoint to endpoint through the index: it does not know the highest number of all of them.
      const [row] = await query(
        `with recursive served (endpoint_id) as (
          (select endpoint_id from jobs order by endpoint_id limit 1)
          union all select (select endpoint_id from jobs where endpoint_id > served.endpoint_id order by endpoint_id limit 1) from served where served.endpoint_id is not null)
        select coalesce(max((select max(seq) from jobs where jobs.endpoint_id = served.endpoint_id)), 0) as seq from served`,
        [],
      );
      return Number(row?.['seq']);
    },

    running: async (endpointId) => {
      await open(endpointId === undefined ? 'all' : { endpointId });
      return (await queryJobs(`select ${JOB} from job_leases as lease join jobs as job on job.endpoint_id = lease.endpoint_id and job.seq = lease.seq where $1::text is null or lease.endpoint_id = $1`, [endpointId ?? null])).map(jobFromValues);
    },

    removeEndpoint: (endpointId) =>
      inTransaction(pool, async (client) => {
        submissions.forget(endpointId);
        for (const table of ['jobs', 'job_places', 'job_leases', 'job_bundles', 'job_chunks', 'job_counts', 'job_workers', 'webhook_deliveries']) await client.query(`delete from ${table} where endpoint_id = $1`, [endpointId]);
      }),

    // Another server may have seen one later; but a time that is far ahead is from before the clock was set back.
    noteWorkers: async (workers) => {
      const values = workers.map(({ endpointId, workerId, seenAt, busy, unhealthy }) => [endpointId, workerId, seenAt, busy, unhealthy]);
      await query(
        `insert into job_workers (${NOTED.join(', ')}) select * from ${unnest(NOTED)}
          on conflict (endpoint_id, worker_id) do update
          set seen_at = case when job_workers.seen_at > excluded.seen_at + ${CLOCKS_APART_MS} then excluded.seen_at else greatest(job_workers.seen_at, excluded.seen_at) end, busy = excluded.busy, unhealthy = excluded.unhealthy`,
        columnsOf(values, NOTED),
      );
    },

    workers: async (endpointId, seenSince) => (await query('select * from job_workers where endpoint_id = $1 and seen_at >= $2', [endpointId, seenSince])).map(workerFromRow),

    tidy: async (seenSince) => {
      await query('delete from job_workers where seen_at < $1', [seenSince]);
      await foldCounts(pool);
    },

    dueDeliveries: async (now, limit, bytes) => {
      const due = await query('select id, octet_length(body) as bytes from webhook_deliveries where next_at <= $1 order by next_at limit $2', [now, limit]);
      return due.length === 0 ? [] : (await query('select * from webhook_deliveries where id = any ($1) and next_at <= $2 order by next_at', [thatFit(due, bytes), now])).map(deliveryFromRow);
    },

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
      (await query(`select ${ENTRY_COLUMNS} from webhook_deliveries where endpoint_id = $1 and ($2::text is null or job_id = $2) order by created_at desc, id desc limit $3`, [endpointId, jobId ?? null, limit])).map(entryFromRow),

    findDelivery: async (endpointId, id) => {
      const [row] = await query('select * from webhook_deliveries where endpoint_id = $1 and id = $2', [endpointId, id]);
      return row === undefined ? undefined : deliveryFromRow(row);
    },
  };
}

function wholeFrom(values: readonly Value[]): WholeJob {
  return { job: seenJob(values).job, payloads: { request: values[AFTER_SEEN] as string, output: values[AFTER_SEEN + 1] as string | null, error: values[AFTER_SEEN + 2] as string | null } };
}
