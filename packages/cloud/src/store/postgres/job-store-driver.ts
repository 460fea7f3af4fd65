import type { Pool } from 'pg';
import { MAX_CLOCK_SKEW_MS } from '../../support/clock.ts';
import { MAX_DUE_SCANS } from '../job-row-changes.ts';
import { isPastRetention, positionAfter, type ChunkPosition } from '../../domain/job-records.ts';
import { IS_TERMINAL, JOB_SELECT, jobFromValues, JOBS_WITH_LEASES, nextCheckAt } from '../tables/job-rows.ts';
import type { JobChangeRequest, JobChangeResult, JobStore, SubmitResult } from '../job-store.ts';
import type { Value } from '../sql.ts';
import { toColumnArrays, unnest } from './column-arrays.ts';
import { CommitBatcher } from './commit-batcher.ts';
import { JOB_READ_SELECT_LENGTH, LeaseBatches, JOB_READ_SELECT, jobFromRead } from './lease-batches.ts';
import { applyChanges, JOB_KEY_COLUMNS, jobKey } from './change-jobs.ts';
import { addCountsSql, mergeCountRows } from './job-counts.ts';
import { jobDeliveries } from './job-deliveries.ts';
import { LeasedJobs, tryFinish } from './finish-jobs.ts';
import { jobReads } from './job-reads.ts';
import { WAITING_JOBS } from './queue-batches.ts';
import { poolQueries } from './pool-queries.ts';
import { JobSubmitter } from './submit-jobs.ts';
import type { Submission } from './submit-jobs.ts';
import { inTransaction, withTransactionRetries } from './transactions.ts';

/** Larger ones gain nothing and hold others up. */
const MAX_SUBMIT_BATCH = 500;
/** Where more have come than fit into this, ends fall behind takes: what a commit costs apart from its jobs counts then. */
const MAX_CHANGE_BATCH = 2_000;

const RECHECK_COLUMNS = [...JOB_KEY_COLUMNS, 'look_at'];
const HEARTBEAT_COLUMNS = ['endpoint_id', 'worker_id', 'seen_at', 'busy', 'unhealthy', 'accelerated'];

/** The queue on PostgreSQL. Each kind of call has a lane of its own, with one commit on its way at a time. */
export function postgresJobStore(pool: Pool, lanes: Pool, server: string): JobStore {
  const queries = poolQueries(pool);
  const handedOut = new LeasedJobs();
  const bundles = new LeaseBatches(pool, (ids) => handedOut.markSplit(ids));
  const submissions = new JobSubmitter(lanes, server);
  const insert = async (items: readonly Submission[]): Promise<SubmitResult[]> => {
    const added = await submissions.insert(items);
    return Promise.all(
      items.map(async (item) => {
        const lease = added.get(jobKey(item.submitted.job.endpointId, item.submitted.job.seq));
        return lease === undefined ? existing(item) : submitted(item, lease !== null);
      }),
    );
  };
  const submits = new CommitBatcher(insert, MAX_SUBMIT_BATCH);

  const submitted = ({ submitted: { job }, idempotency }: Submission, met: boolean): SubmitResult => ({
    job,
    created: true,
    seenByTakes: met,
    bodyHash: idempotency?.bodyHash ?? null,
  });
  /** It was not added: the idempotency key is taken, or another server counted to the same number at the same time. */
  const existing = async (item: Submission): Promise<SubmitResult> => {
    const {
      submitted: { job },
      idempotency,
    } = item;
    const held =
      idempotency === undefined
        ? undefined
        : await bundles.splitAndRetry(async () => {
            const [values] = await queries.arrays(
              `select ${JOB_READ_SELECT}, job.body_hash from ${JOBS_WITH_LEASES} where job.endpoint_id = $1 and job.idempotency_key = $2`,
              [job.endpointId, idempotency.key],
            );
            return values === undefined
              ? undefined
              : { holder: jobFromRead(values).job, bodyHash: values[JOB_READ_SELECT_LENGTH] as string };
          });
    if (held !== undefined) {
      const { holder, bodyHash } = held;
      if (isPastRetention(holder, job.createdAt)) {
        await changes.add({
          endpointId: holder.endpointId,
          seq: holder.seq,
          next: (current) =>
            isPastRetention(current, job.createdAt) ? { job: current, remove: true } : undefined,
        });
        const [added] = await insert([item]);
        return added as SubmitResult;
      }
      if (holder.id !== job.id) return { job: holder, created: false, seenByTakes: false, bodyHash };
    }
    const [holder] = await queries.rows('select id from jobs where endpoint_id = $1 and seq = $2', [
      job.endpointId,
      job.seq,
    ]);
    return { job, created: holder?.['id'] === job.id, seenByTakes: false, bodyHash: null };
  };

  /** Ends that were kept with others that could not be: those come again. */
  const ended = new WeakMap<JobChangeRequest, JobChangeResult>();
  const changeRest = async (
    items: readonly JobChangeRequest[],
    results: (JobChangeResult | undefined)[],
  ): Promise<void> => {
    const rest = items.filter((_, index) => results[index] === undefined);
    const changed = await bundles.splitAndRetry(() =>
      withTransactionRetries(() => inTransaction(pool, (client) => applyChanges(client, server, rest))),
    );
    for (const done of changed) {
      if (done?.after.status === 'IN_PROGRESS') handedOut.set(done.after);
      else if (done !== undefined) handedOut.delete(done.after.endpointId, done.after.seq);
    }
    for (const [index, done] of results.entries()) if (done === undefined) results[index] = changed.shift();
  };
  const changes = new CommitBatcher<JobChangeRequest, JobChangeResult | undefined>(async (items) => {
    const results = await tryFinish(lanes, server, handedOut, items, ended);
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
  }, MAX_CHANGE_BATCH);

  return {
    ...jobReads(queries, bundles),
    ...jobDeliveries(queries),
    sameTurnTakes: { at: (endpointId) => submissions.canMatchAt(endpointId) },

    submit: (whole, idempotency) => {
      const item: Submission = { submitted: whole, idempotency };
      submissions.expect(item);
      return submits.add(item);
    },

    take: async (endpointId, terms) => {
      const { taken, leaseBatchId: id } = await submissions.take(endpointId, terms);
      const bundle =
        id === undefined ? undefined : { endpointId, id, unfinished: taken.length, isSplit: false };
      for (const { job } of taken) handedOut.set(job, bundle);
      return taken;
    },

    change: (endpointId, seq, next) => changes.add({ endpointId, seq, next }),

    changeAll: (asked) => changes.addAll(asked),

    appendChunks: (endpointId, seq, next) =>
      bundles.splitAndRetry(() =>
        inTransaction(pool, async (client) => {
          // Two servers that hear the same worker come one after the other here.
          await client.query('select 1 from jobs where endpoint_id = $1 and seq = $2 for update', [
            endpointId,
            seq,
          ]);
          const {
            rows: [values],
          } = await client.query<Value[]>({
            text: `select ${JOB_READ_SELECT}, last.number, last.worker_number from ${JOBS_WITH_LEASES}
            left join lateral (select number, worker_number from job_chunks where endpoint_id = $1 and seq = $2 order by number desc limit 1) as last on true where job.endpoint_id = $1 and job.seq = $2`,
            values: [endpointId, seq],
            rowMode: 'array',
          });
          if (values === undefined) return undefined;
          const end: ChunkPosition = {
            number: Number(values[JOB_READ_SELECT_LENGTH] ?? 0),
            workerNumber: Number(values[JOB_READ_SELECT_LENGTH + 1] ?? 0),
          };
          const chunks = next(jobFromRead(values).job, end);
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
          return positionAfter(end, chunks);
        }),
      ),

    listDue: async (now, limit) => {
      await bundles.split({ dueBy: now });
      const due = (
        await queries.arrays(
          `select ${JOB_SELECT} from job_leases as lease join jobs as job on job.endpoint_id = lease.endpoint_id and job.seq = lease.seq where lease.due_at <= $1 order by lease.due_at limit $2`,
          [now, limit],
        )
      ).map(jobFromValues);
      for (let looks = 0; looks < MAX_DUE_SCANS && due.length < limit; looks += 1) {
        const found = (
          await queries.arrays(
            `select ${JOB_SELECT} from ${JOBS_WITH_LEASES} where job.look_at <= $1 order by job.look_at limit $2`,
            [now, limit],
          )
        ).map(jobFromValues);
        const later = found.filter((job) => job.status === 'IN_PROGRESS' || job.dueAt > now);
        due.push(...found.filter((job) => !later.includes(job) && !isPastRetention(job, now)));
        if (later.length > 0) {
          // What another server just changes is left to it.
          await queries.rows(
            // Somebody may have made its time to live shorter since.
            `update jobs set look_at = greatest(least(given.look_at, jobs.ttl_at), $4::bigint) from (select locked.* from ${unnest(RECHECK_COLUMNS)}, lateral (select given.*, 1 as found from jobs where endpoint_id = given.endpoint_id and seq = given.seq for update skip locked) as locked) as given
              where jobs.endpoint_id = given.endpoint_id and jobs.seq = given.seq`,
            [
              ...toColumnArrays(
                later.map((job) => [job.endpointId, job.seq, nextCheckAt(job, now)]),
                RECHECK_COLUMNS,
              ),
              now + 1,
            ],
          );
        }
        if (later.length === 0 || found.length < limit) break;
      }
      return due;
    },

    deleteExpired: async (now, limit) => {
      const [row] = await queries.rows(
        // What another server just forgets is left to it.
        `with gone as materialized (select endpoint_id, seq from jobs where look_at <= $1 and due_at <= $1 and ${IS_TERMINAL} order by look_at limit $2 for update skip locked),
          removed as (delete from jobs using gone where jobs.endpoint_id = gone.endpoint_id and jobs.seq = gone.seq),
          chunks as (delete from job_chunks using gone where job_chunks.endpoint_id = gone.endpoint_id and job_chunks.seq = gone.seq)
          select count(*) as removed from gone`,
        [now, limit],
      );
      return Number(row?.['removed']);
    },

    purge: (endpointId) =>
      withTransactionRetries(async () => {
        const [row] = await queries.rows(
          // Locked in the order in which changes lock them too, so that neither waits for the other. Whoever was taken meanwhile has no place any more.
          `with locked as materialized (select job.seq from ${WAITING_JOBS} as waiting join jobs as job on job.endpoint_id = waiting.endpoint_id and job.seq = waiting.seq
              where waiting.endpoint_id = $1 order by job.seq for update of job),
            emptied as (delete from job_places where endpoint_id = $1 and (select count(*) from locked) >= 0 returning seqs[gone + 1:] as seqs),
            gone as materialized (select unnest(seqs) as seq from emptied),
            removed as (delete from jobs using gone where jobs.endpoint_id = $1 and jobs.seq = gone.seq),
            chunks as (delete from job_chunks where endpoint_id = $1 and seq in (select seq from gone)),
            counted as (${addCountsSql(`select $1, $2 || ' purge', -count(*), 0, 0, 0, 0 from gone`)})
            select count(*) as removed from gone`,
          [endpointId, server],
        );
        return Number(row?.['removed']);
      }),

    highestSeq: async () => {
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
        submissions.deleteEndpoint(endpointId);
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
    saveHeartbeats: async (workers) => {
      const values = toColumnArrays(
        workers.map(({ endpointId, workerId, seenAt, busy, unhealthy, accelerated }) => [
          endpointId,
          workerId,
          seenAt,
          busy,
          unhealthy,
          accelerated ? 1 : 0,
        ]),
        HEARTBEAT_COLUMNS,
      );
      await withTransactionRetries(() =>
        queries.rows(
          `insert into job_workers (${HEARTBEAT_COLUMNS.join(', ')}) select * from ${unnest(HEARTBEAT_COLUMNS)} order by endpoint_id, worker_id
            on conflict (endpoint_id, worker_id) do update
            set seen_at = case when job_workers.seen_at > excluded.seen_at + ${MAX_CLOCK_SKEW_MS} then excluded.seen_at else greatest(job_workers.seen_at, excluded.seen_at) end, busy = excluded.busy, unhealthy = excluded.unhealthy, accelerated = excluded.accelerated`,
          values,
        ),
      );
    },

    compact: async (seenSince) => {
      await queries.rows('delete from job_workers where seen_at < $1', [seenSince]);
      await mergeCountRows(pool);
    },
  };
}
