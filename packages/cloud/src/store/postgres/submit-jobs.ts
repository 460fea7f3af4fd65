import type { Pool } from 'pg';
import { ChurnMap } from '../../support/churn-map.ts';
import type { JobWithPayloads, Idempotency, TakenJob, Claim, TakeRequest } from '../../domain/job-records.ts';
import { INSERTED_COLUMNS, insertedValues, LEASE_COLUMNS } from '../tables/job-rows.ts';
import type { Value } from '../sql.ts';
import { toColumnArrays, unnest } from './column-arrays.ts';
import { leaseDueAtSql } from './lease-batches.ts';
import { jobKey } from './change-jobs.ts';
import { addCountsSql } from './job-counts.ts';
import { queryQueuePool } from './queue-pool.ts';
import {
  insertQueueBatchesSql,
  QUEUE_BATCH_COLUMNS,
  singleJobBatch,
  batchByQueue,
  queueBatchValues,
} from './queue-batches.ts';
import type { QueuedJob, QueueBatch } from './queue-batches.ts';
import { JobTaker } from './take-jobs.ts';
import type { TakeResult } from './take-jobs.ts';
import { isDivisionByZero, translateErrors } from './transactions.ts';

export interface Submission {
  submitted: JobWithPayloads;
  idempotency: Idempotency | undefined;
}

/** A take that wants what is just coming in. */
interface MatchableTake {
  terms: TakeRequest;
  resolve(handed: Promise<TakeResult> | TakeResult): void;
  reject(error: unknown): void;
}

/** The same, when the statement that brings them together is made. */
interface MatchedTake extends MatchableTake {
  endpointId: string;
  claims: readonly Claim[];
}

/** More than this at once wait for their turn: there is enough to do, and each is compared with each claim. */
const MAX_MATCHED_JOBS = 32;

const INSERTED_JOB_COLUMNS = [...INSERTED_COLUMNS, 'place'];
const INSERTED_JOBS_CTE = `added as (insert into jobs (${INSERTED_JOB_COLUMNS.join(', ')}) select * from ${unnest(INSERTED_JOB_COLUMNS)} on conflict do nothing
    returning endpoint_id, seq, position, attempt, ttl_at, execution_timeout, place)`;
const FIRST_BATCH_PARAMETER = INSERTED_JOB_COLUMNS.length + 1;
const AFTER_BATCH_PARAMETERS = INSERTED_JOB_COLUMNS.length + QUEUE_BATCH_COLUMNS.length;
const SERVER = `$${AFTER_BATCH_PARAMETERS + 1}`;

/** Places whose first job is among these. Said so, the planner makes a table of them, and does not go through all of them for each place. */
const firstJobIn = (jobs: string): string =>
  `((given.endpoint_id, given.seq) in (select endpoint_id, seq from ${jobs})) is true`;

/** Jobs that wait. Where not all who share a place could be added, nothing is kept. */
const INSERT_JOBS = `with ${INSERTED_JOBS_CTE},
  placed as (${insertQueueBatchesSql(FIRST_BATCH_PARAMETER, firstJobIn('added'))}),
  counted as (${addCountsSql(`select endpoint_id, ${SERVER} || ' submit', count(*), 0, 0, 0, 0 from added group by endpoint_id`)})
  select endpoint_id, seq, null as lease from added where 1 / (case when (select count(place) from added) = $${AFTER_BATCH_PARAMETERS + 2}::bigint then 1 else 0 end) = 1`;

const CLAIM_COLUMNS = ['endpoint_id', 'worker_id', 'lease', 'taken_at', 'look_at', 'turn'] as const;

/**
 * Jobs that workers wait for: the first of an endpoint goes to its first claim, and so on; the
 * others wait. Where some wait already, all do, and the claims get nothing.
 */
const INSERT_AND_TAKE = `with ${INSERTED_JOBS_CTE},
  claimed as (select * from ${unnest(CLAIM_COLUMNS, AFTER_BATCH_PARAMETERS + 2, 'claim')}
    where not exists (select 1 from job_places as place where place.endpoint_id = claim.endpoint_id)),
  met as materialized (
    select job.endpoint_id, job.seq, claimed.worker_id, claimed.lease, job.attempt + 1 as attempt, claimed.taken_at,
      ${leaseDueAtSql('claimed.look_at', 'claimed.taken_at')} as due_at
    from (select added.*, row_number() over (partition by endpoint_id order by position, seq) as turn from added) as job join claimed using (endpoint_id, turn)),
  begun as (insert into job_leases (${LEASE_COLUMNS.join(', ')}) select ${LEASE_COLUMNS.join(', ')} from met),
  told as materialized (select added.*, met.lease from added left join met using (endpoint_id, seq)),
  placed as (${insertQueueBatchesSql(FIRST_BATCH_PARAMETER, firstJobIn('told where lease is null'))}),
  counted as (${addCountsSql(`select endpoint_id, ${SERVER} || ' submit', count(*) - count(lease), count(lease), 0, 0, 0 from told group by endpoint_id`)})
  select endpoint_id, seq, lease from told`;

/** What a statement added, by key: the lease where a worker has the job already, null where it waits. */
export type InsertedJobs = ReadonlyMap<string, string | null>;

/**
 * Jobs on their way into the queue, and takes that meet them there: where nobody waits on an
 * endpoint but a worker, one statement brings the job to the worker, and it never waits.
 */
export class JobSubmitter {
  readonly #lanes: Pool;
  readonly #server: string;
  /** How many of each endpoint are expected that no statement holds yet. */
  readonly #expected = new ChurnMap<string, number>();
  readonly #meetings = new ChurnMap<string, MatchableTake>();
  /** Endpoints where a take lately left nothing. Another server may know better. */
  readonly #quiet = new Set<string>();
  readonly #takes: JobTaker;

  constructor(lanes: Pool, server: string) {
    this.#lanes = lanes;
    this.#server = server;
    this.#takes = new JobTaker(lanes, server);
  }

  /** Whether a take that is asked for while jobs are expected meets them. */
  canMatchAt(endpointId: string): boolean {
    return this.#quiet.has(endpointId);
  }

  /** It will be inserted. */
  expect({
    submitted: {
      job: { endpointId },
    },
  }: Submission): void {
    this.#expected.set(endpointId, (this.#expected.get(endpointId) ?? 0) + 1);
  }

  async insert(items: readonly Submission[]): Promise<InsertedJobs> {
    const met = this.#meet(items);
    try {
      const added = await this.#write(items, met);
      for (const one of met) one.resolve(this.#taken(one, items, added));
      return added;
    } catch (error) {
      for (const { reject } of met) reject(error);
      throw error;
    }
  }

  take(endpointId: string, terms: TakeRequest): Promise<TakeResult> {
    const isExpected =
      this.#quiet.has(endpointId) && this.#expected.has(endpointId) && !this.#meetings.has(endpointId);
    if (!isExpected) return this.#takeWaiting(endpointId, terms);
    return new Promise((resolve, reject) => this.#meetings.set(endpointId, { terms, resolve, reject }));
  }

  deleteEndpoint(endpointId: string): void {
    this.#quiet.delete(endpointId);
    this.#takes.deleteEndpoint(endpointId);
  }

  /** The takes that want what these bring. */
  #meet(items: readonly Submission[]): MatchedTake[] {
    const met: MatchedTake[] = [];
    for (const [endpointId, arrived] of Map.groupBy(items, ({ submitted }) => submitted.job.endpointId)) {
      const left = (this.#expected.get(endpointId) ?? 0) - arrived.length;
      if (left > 0) this.#expected.set(endpointId, left);
      else this.#expected.delete(endpointId);
      const meeting = this.#meetings.get(endpointId);
      if (meeting === undefined) continue;
      this.#meetings.delete(endpointId);
      const claims = items.length <= MAX_MATCHED_JOBS && areOfOneQueue(arrived) ? meeting.terms.claims() : [];
      met.push({ ...meeting, endpointId, claims });
    }
    return met;
  }

  /** `apart`: each in a place of its own. */
  async #write(
    items: readonly Submission[],
    met: readonly MatchedTake[],
    apart = met.length > 0,
  ): Promise<InsertedJobs> {
    const places = apart ? items.map(ownBatch) : batchesOf(items);
    const shared = places.filter(({ entries }) => entries.length > 1);
    const placeOf = new Map(
      shared.flatMap(({ entries }) => entries.map(({ job }) => [job, entries[0]?.job.seq] as const)),
    );
    const jobs = items.map(({ submitted: { job, payloads }, idempotency }) => [
      ...insertedValues(job, idempotency, payloads.request),
      placeOf.get(job) ?? null,
    ]);
    const claimed = met.flatMap(({ endpointId, claims, terms }) =>
      claims
        .slice(0, MAX_MATCHED_JOBS)
        .map(({ workerId, lease }, index): Value[] => [
          endpointId,
          workerId,
          lease,
          terms.takenAt,
          terms.leaseCheckAt,
          index + 1,
        ]),
    );
    const values = [
      ...toColumnArrays(jobs, INSERTED_JOB_COLUMNS),
      ...toColumnArrays(places.map(queueBatchValues), QUEUE_BATCH_COLUMNS),
      this.#server,
    ];
    const statement =
      claimed.length === 0
        ? { name: 'insert jobs', text: INSERT_JOBS, values: [...values, placeOf.size] }
        : {
            name: 'insert and take',
            text: INSERT_AND_TAKE,
            values: [...values, ...toColumnArrays(claimed, CLAIM_COLUMNS)],
          };
    let rows: [string, number, string | null][];
    try {
      rows = await translateErrors(queryQueuePool<[string, number, string | null]>(this.#lanes, statement));
    } catch (error) {
      // Another server counted to the same number, or this comes for the second time.
      if (isDivisionByZero(error)) return this.#write(items, met, true);
      throw error;
    }
    for (const [endpointId, , lease] of rows) if (lease === null) this.#quiet.delete(endpointId);
    return new Map(rows.map(([endpointId, seq, lease]) => [jobKey(endpointId, seq), lease]));
  }

  #taken(
    { endpointId, terms, claims }: MatchedTake,
    items: readonly Submission[],
    added: InsertedJobs,
  ): TakeResult | Promise<TakeResult> {
    const byLease = new Map(claims.map((claim) => [claim.lease, claim]));
    const taken = items.flatMap(({ submitted: { job, payloads } }): TakenJob[] => {
      const claim = byLease.get(added.get(jobKey(job.endpointId, job.seq)) ?? '');
      return claim === undefined
        ? []
        : [{ job: terms.startAttempt(job, claim).job, request: payloads.request }];
    });
    // Others waited before them, or it is not known here who comes first.
    return taken.length > 0
      ? { taken, leaseBatchId: undefined, skippedLocked: false }
      : this.#takeWaiting(endpointId, claims.length === 0 ? terms : { ...terms, claims: () => claims });
  }

  async #takeWaiting(endpointId: string, terms: TakeRequest): Promise<TakeResult> {
    const claims = terms.claims();
    const handed = await this.#takes.take(endpointId, terms, claims);
    if (handed.skippedLocked) terms.onLockedSkipped?.();
    else if (handed.taken.length < claims.length) this.#quiet.add(endpointId);
    return handed;
  }
}

/** Those of one queue share places. Whoever has a key may be there already, and waits alone. */
function batchesOf(items: readonly Submission[]): QueueBatch[] {
  const canShare = ({ idempotency, submitted: { job } }: Submission): boolean =>
    idempotency === undefined && job.position === job.seq;
  return [
    ...batchByQueue(items.filter(canShare).map(toQueuedJob)),
    ...items.filter((item) => !canShare(item)).map(ownBatch),
  ];
}

function ownBatch(item: Submission): QueueBatch {
  return singleJobBatch(toQueuedJob(item));
}

function toQueuedJob({ submitted: { job, payloads } }: Submission): QueuedJob {
  return { job, request: payloads.request };
}

/** Whether they are of one queue, where the first that came is the first to go. */
function areOfOneQueue(items: readonly Submission[]): boolean {
  const [first] = items;
  return items.every(
    ({ submitted: { job } }) =>
      job.accountId === first?.submitted.job.accountId && job.lowPriority === first.submitted.job.lowPriority,
  );
}
