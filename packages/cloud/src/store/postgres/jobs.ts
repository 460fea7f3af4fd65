import type { Pool } from 'pg';
import { CLOCKS_APART_MS } from '../../support/clock.ts';
import { MOST_LOOKS } from '../job-moves.ts';
import { isOver } from '../job-records.ts';
import { HAS_ENDED, JOB, jobFromValues, JOBS_AND_LEASES, nextLook } from '../job-rows.ts';
import { endAfter } from '../jobs.ts';
import type { AskedChange, Changed, JobStore, StreamEnd, Submitted } from '../jobs.ts';
import type { Value } from '../sql.ts';
import { columnsOf, unnest } from './arrays.ts';
import { Batch } from './batch.ts';
import { AFTER_SEEN, Bundles, SEEN, seenJob } from './bundles.ts';
import { applyChanges, KEY, keyOf } from './changes.ts';
import { ADD_COUNTS, foldCounts } from './counts.ts';
import { inTransaction, retried } from './database.ts';
import { deliveries } from './deliveries.ts';
import { HandedOut, tryEnds } from './finish.ts';
import { jobLooks } from './job-looks.ts';
import { WAITING } from './places.ts';
import { queriesOn } from './queries.ts';
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
  const queries = queriesOn(pool);
  const handedOut = new HandedOut();
  const bundles = new Bundles(pool, (ids) => handedOut.opened(ids));
  const submissions = new Submissions(lanes, server);
  const insert = async (items: readonly Submission[]): Promise<Submitted[]> => {
    const added = await submissions.insert(items);
    return Promise.all(
      items.map(async (item) => {
        const lease = added.get(keyOf(item.whole.job.endpointId, item.whole.job.seq));
        return lease === undefined ? existing(item) : submitted(item, lease !== null);
      }),
    );
  };
  const submits = new Batch(insert, MOST_SUBMITTED);

  const submitted = ({ whole: { job }, idempotency }: Submission, met: boolean): Submitted => ({
    job,
    created: true,
    met,
    bodyHash: idempotency?.bodyHash ?? null,
  });
  /** It was not added: the idempotency key is taken, or another server counted to the same number at the same time. */
  const existing = async (item: Submission): Promise<Submitted> => {
    const {
      whole: { job },
      idempotency,
    } = item;
    const held =
      idempotency === undefined
        ? undefined
        : await bundles.opening(async () => {
            const [values] = await queries.arrays(
              `select ${SEEN}, job.body_hash from ${JOBS_AND_LEASES} where job.endpoint_id = $1 and job.idempotency_key = $2`,
              [job.endpointId, idempotency.key],
            );
            return values === undefined
              ? undefined
              : { holder: seenJob(values).job, bodyHash: values[AFTER_SEEN] as string };
          });
    if (held !== undefined) {
      const { holder, bodyHash } = held;
      if (isOver(holder, job.createdAt)) {
        await changes.add({
          endpointId: holder.endpointId,
          seq: holder.seq,
          next: (current) => (isOver(current, job.createdAt) ? { job: current, remove: true } : undefined),
        });
        const [added] = await insert([item]);
        return added as Submitted;
      }
      if (holder.id !== job.id) return { job: holder, created: false, met: false, bodyHash };
    }
    const [holder] = await queries.rows('select id from jobs where endpoint_id = $1 and seq = $2', [
      job.endpointId,
      job.seq,
    ]);
    return { job, created: holder?.['id'] === job.id, met: false, bodyHash: null };
  };

  /** Ends that were kept with others that could not be: those come again. */
  const ended = new WeakMap<AskedChange, Changed>();
  const changeRest = async (
    items: readonly AskedChange[],
    results: (Changed | undefined)[],
  ): Promise<void> => {
    const rest = items.filter((_, index) => results[index] === undefined);
    const changed = await bundles.opening(() =>
      retried(() => inTransaction(pool, (client) => applyChanges(client, server, rest))),
    );
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
    ...jobLooks(queries, bundles),
    ...deliveries(queries),
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

    appendChunks: (endpointId, seq, next) =>
      bundles.opening(() =>
        inTransaction(pool, async (client) => {
          // Two servers that hear the same worker come one after the other here.
          await client.query('select 1 from jobs where endpoint_id = $1 and seq = $2 for update', [
            endpointId,
            seq,
          ]);
          const {
            rows: [values],
          } = await client.query<Value[]>({
            text: `select ${SEEN}, last.number, last.worker_number from ${JOBS_AND_LEASES}
            left join lateral (select number, worker_number from job_chunks where endpoint_id = $1 and seq = $2 order by number desc limit 1) as last on true where job.endpoint_id = $1 and job.seq = $2`,
            values: [endpointId, seq],
            rowMode: 'array',
          });
          if (values === undefined) return undefined;
          const end: StreamEnd = {
            number: Number(values[AFTER_SEEN] ?? 0),
            workerNumber: Number(values[AFTER_SEEN + 1] ?? 0),
          };
          const chunks = next(seenJob(values).job, end);
          if (chunks === undefined) return undefined;
          if (chunks.length > 0) {
            await client.query(
              'insert into job_chunks (endpoint_id, seq, number, worker_number, chunk) select $1, $2, $5::int + given.place, given.worker_number, given.chunk from unnest($3::text[], $4::int[]) with ordinality as given (chunk, worker_number, place)',
              [
                endpointId,
                seq,
                chunks.map(({ text }) => text),
                chunks.map(({ workerNumber }) => workerNumber),
                end.number,
              ],
            );
          }
          return endAfter(end, chunks);
        }),
      ),

    due: async (now, limit) => {
      await bundles.open({ dueBy: now });
      const due = (
        await queries.arrays(
          `select ${JOB} from job_leases as lease join jobs as job on job.endpoint_id = lease.endpoint_id and job.seq = lease.seq where lease.due_at <= $1 order by lease.due_at limit $2`,
          [now, limit],
        )
      ).map(jobFromValues);
      for (let looks = 0; looks < MOST_LOOKS && due.length < limit; looks += 1) {
        const found = (
          await queries.arrays(
            `select ${JOB} from ${JOBS_AND_LEASES} where job.look_at <= $1 order by job.look_at limit $2`,
            [now, limit],
          )
        ).map(jobFromValues);
        const later = found.filter((job) => job.status === 'IN_PROGRESS' || job.dueAt > now);
        due.push(...found.filter((job) => !later.includes(job) && !isOver(job, now)));
        if (later.length > 0) {
          // What another server just changes is left to it.
          await queries.rows(
            // Somebody may have made its time to live shorter since.
            `update jobs set look_at = greatest(least(given.look_at, jobs.ttl_at), $4::bigint) from (select locked.* from ${unnest(LOOKED_AT)}, lateral (select given.*, 1 as found from jobs where endpoint_id = given.endpoint_id and seq = given.seq for update skip locked) as locked) as given
              where jobs.endpoint_id = given.endpoint_id and jobs.seq = given.seq`,
            [
              ...columnsOf(
                later.map((job) => [job.endpointId, job.seq, nextLook(job, now)]),
                LOOKED_AT,
              ),
              now + 1,
            ],
          );
        }
        if (later.length === 0 || found.length < limit) break;
      }
      return due;
    },

    forgetEnded: async (now, limit) => {
      const [row] = await queries.rows(
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
        const [row] = await queries.rows(
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

    newest: async () => {
      // From endpoint to endpoint through the index: it does not know the highest number of all of them.
      const [row] = await queries.rows(
        `with recursive served (endpoint_id) as (
          (select endpoint_id from jobs order by endpoint_id limit 1)
          union all select (select endpoint_id from jobs where endpoint_id > served.endpoint_id order by endpoint_id limit 1) from served where served.endpoint_id is not null)
        select coalesce(max((select max(seq) from jobs where jobs.endpoint_id = served.endpoint_id)), 0) as seq from served`,
        [],
      );
      return Number(row?.['seq']);
    },

    removeEndpoint: (endpointId) =>
      inTransaction(pool, async (client) => {
        submissions.forget(endpointId);
        for (const table of [
          'jobs',
          'job_places',
          'job_leases',
          'job_bundles',
          'job_chunks',
          'job_counts',
          'job_workers',
          'webhook_deliveries',
        ])
          await client.query(`delete from ${table} where endpoint_id = $1`, [endpointId]);
      }),

    // Another server may have seen one later; but a time that is far ahead is from before the clock was set back.
    // Every server writes in the same order: two that note the same workers would else wait for each other.
    noteWorkers: async (workers) => {
      const values = columnsOf(
        workers.map(({ endpointId, workerId, seenAt, busy, unhealthy }) => [
          endpointId,
          workerId,
          seenAt,
          busy,
          unhealthy,
        ]),
        NOTED,
      );
      await retried(() =>
        queries.rows(
          `insert into job_workers (${NOTED.join(', ')}) select * from ${unnest(NOTED)} order by endpoint_id, worker_id
            on conflict (endpoint_id, worker_id) do update
            set seen_at = case when job_workers.seen_at > excluded.seen_at + ${CLOCKS_APART_MS} then excluded.seen_at else greatest(job_workers.seen_at, excluded.seen_at) end, busy = excluded.busy, unhealthy = excluded.unhealthy`,
          values,
        ),
      );
    },

    tidy: async (seenSince) => {
      await queries.rows('delete from job_workers where seen_at < $1', [seenSince]);
      await foldCounts(pool);
    },
  };
}
