import type { Pool } from 'pg';
import { SteadyMap } from '../../support/steady-map.ts';
import type { WholeJob } from '../job-records.ts';
import { INSERTED_COLUMNS, insertedValues, LEASE_COLUMNS } from '../job-rows.ts';
import type { Claim, Idempotency, TakenJob, TakeTerms } from '../jobs.ts';
import type { Value } from '../sql.ts';
import { columnsOf, unnest } from './arrays.ts';
import { leaseDue } from './bundles.ts';
import { keyOf } from './changes.ts';
import { ADD_COUNTS } from './counts.ts';
import { isDivisionByZero, translated } from './database.ts';
import { queryLane } from './lanes.ts';
import { insertPlaces, PLACE_COLUMNS, placeAlone, placesTogether, placeValues } from './places.ts';
import type { Arrival, Place } from './places.ts';
import { Takes } from './take.ts';
import type { Handed } from './take.ts';

export interface Submission {
  whole: WholeJob;
  idempotency: Idempotency | undefined;
}

/** A take that wants what is just coming in. */
interface Meeting {
  terms: TakeTerms;
  resolve(handed: Promise<Handed> | Handed): void;
  reject(error: unknown): void;
}

/** The same, when the statement that brings them together is made. */
interface Met extends Meeting {
  endpointId: string;
  claims: readonly Claim[];
}

/** More than this at once wait for their turn: there is enough to do, and each is compared with each claim. */
const MOST_MET = 32;

const INSERTED = [...INSERTED_COLUMNS, 'place'];
const ADDED = `added as (insert into jobs (${INSERTED.join(', ')}) select * from ${unnest(INSERTED)} on conflict do nothing
    returning endpoint_id, seq, position, attempt, ttl_at, execution_timeout, place)`;
const FIRST_PLACE = INSERTED.length + 1;
const AFTER_PLACES = INSERTED.length + PLACE_COLUMNS.length;
const SERVER = `$${AFTER_PLACES + 1}`;

/** Places whose first job is among these. Said so, the planner makes a table of them, and does not go through all of them for each place. */
const among = (jobs: string): string =>
  `((given.endpoint_id, given.seq) in (select endpoint_id, seq from ${jobs})) is true`;

/** Jobs that wait. Where not all who share a place could be added, nothing is kept. */
const INSERT_JOBS = `with ${ADDED},
  placed as (${insertPlaces(FIRST_PLACE, among('added'))}),
  counted as (${ADD_COUNTS(`select endpoint_id, ${SERVER} || ' submit', count(*), 0, 0, 0, 0 from added group by endpoint_id`)})
  select endpoint_id, seq, null as lease from added where 1 / (case when (select count(place) from added) = $${AFTER_PLACES + 2}::bigint then 1 else 0 end) = 1`;

const CLAIMED = ['endpoint_id', 'worker_id', 'lease', 'taken_at', 'look_at', 'turn'] as const;

/**
 * Jobs that workers wait for: the first of an endpoint goes to its first claim, and so on; the
 * others wait. Where some wait already, all do, and the claims get nothing.
 */
const INSERT_AND_TAKE = `with ${ADDED},
  claimed as (select * from ${unnest(CLAIMED, AFTER_PLACES + 2, 'claim')}
    where not exists (select 1 from job_places as place where place.endpoint_id = claim.endpoint_id)),
  met as materialized (
    select job.endpoint_id, job.seq, claimed.worker_id, claimed.lease, job.attempt + 1 as attempt, claimed.taken_at,
      ${leaseDue('claimed.look_at', 'claimed.taken_at')} as due_at
    from (select added.*, row_number() over (partition by endpoint_id order by position, seq) as turn from added) as job join claimed using (endpoint_id, turn)),
  begun as (insert into job_leases (${LEASE_COLUMNS.join(', ')}) select ${LEASE_COLUMNS.join(', ')} from met),
  told as materialized (select added.*, met.lease from added left join met using (endpoint_id, seq)),
  placed as (${insertPlaces(FIRST_PLACE, among('told where lease is null'))}),
  counted as (${ADD_COUNTS(`select endpoint_id, ${SERVER} || ' submit', count(*) - count(lease), count(lease), 0, 0, 0 from told group by endpoint_id`)})
  select endpoint_id, seq, lease from told`;

/** What a statement added, by key: the lease where a worker has the job already, null where it waits. */
export type Added = ReadonlyMap<string, string | null>;

/**
 * Jobs on their way into the queue, and takes that meet them there: where nobody waits on an
 * endpoint but a worker, one statement brings the job to the worker, and it never waits.
 */
export class Submissions {
  readonly #lanes: Pool;
  readonly #server: string;
  /** How many of each endpoint are expected that no statement holds yet. */
  readonly #expected = new SteadyMap<string, number>();
  readonly #meetings = new SteadyMap<string, Meeting>();
  /** Endpoints where a take lately left nothing. Another server may know better. */
  readonly #quiet = new Set<string>();
  readonly #takes: Takes;

  constructor(lanes: Pool, server: string) {
    this.#lanes = lanes;
    this.#server = server;
    this.#takes = new Takes(lanes, server);
  }

  /** Whether a take that is asked for while jobs are expected meets them. */
  meetAt(endpointId: string): boolean {
    return this.#quiet.has(endpointId);
  }

  /** It will be inserted. */
  expect({
    whole: {
      job: { endpointId },
    },
  }: Submission): void {
    this.#expected.set(endpointId, (this.#expected.get(endpointId) ?? 0) + 1);
  }

  async insert(items: readonly Submission[]): Promise<Added> {
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

  take(endpointId: string, terms: TakeTerms): Promise<Handed> {
    const isExpected =
      this.#quiet.has(endpointId) && this.#expected.has(endpointId) && !this.#meetings.has(endpointId);
    if (!isExpected) return this.#takeWaiting(endpointId, terms);
    return new Promise((resolve, reject) => this.#meetings.set(endpointId, { terms, resolve, reject }));
  }

  forget(endpointId: string): void {
    this.#quiet.delete(endpointId);
    this.#takes.forget(endpointId);
  }

  /** The takes that want what these bring. */
  #meet(items: readonly Submission[]): Met[] {
    const met: Met[] = [];
    for (const [endpointId, arrived] of Map.groupBy(items, ({ whole }) => whole.job.endpointId)) {
      const left = (this.#expected.get(endpointId) ?? 0) - arrived.length;
      if (left > 0) this.#expected.set(endpointId, left);
      else this.#expected.delete(endpointId);
      const meeting = this.#meetings.get(endpointId);
      if (meeting === undefined) continue;
      this.#meetings.delete(endpointId);
      const claims = items.length <= MOST_MET && areAlike(arrived) ? meeting.terms.claims() : [];
      met.push({ ...meeting, endpointId, claims });
    }
    return met;
  }

  /** `apart`: each in a place of its own. */
  async #write(items: readonly Submission[], met: readonly Met[], apart = met.length > 0): Promise<Added> {
    const places = apart ? items.map(alone) : placesOf(items);
    const shared = places.filter(({ arrivals }) => arrivals.length > 1);
    const placeOf = new Map(
      shared.flatMap(({ arrivals }) => arrivals.map(({ job }) => [job, arrivals[0]?.job.seq] as const)),
    );
    const jobs = items.map(({ whole: { job, payloads }, idempotency }) => [
      ...insertedValues(job, idempotency, payloads.request),
      placeOf.get(job) ?? null,
    ]);
    const claimed = met.flatMap(({ endpointId, claims, terms }) =>
      claims
        .slice(0, MOST_MET)
        .map(({ workerId, lease }, index): Value[] => [
          endpointId,
          workerId,
          lease,
          terms.takenAt,
          terms.lookAt,
          index + 1,
        ]),
    );
    const values = [
      ...columnsOf(jobs, INSERTED),
      ...columnsOf(places.map(placeValues), PLACE_COLUMNS),
      this.#server,
    ];
    const statement =
      claimed.length === 0
        ? { name: 'insert jobs', text: INSERT_JOBS, values: [...values, placeOf.size] }
        : {
            name: 'insert and take',
            text: INSERT_AND_TAKE,
            values: [...values, ...columnsOf(claimed, CLAIMED)],
          };
    let rows: [string, number, string | null][];
    try {
      rows = await translated(queryLane<[string, number, string | null]>(this.#lanes, statement));
    } catch (error) {
      // Another server counted to the same number, or this comes for the second time.
      if (isDivisionByZero(error)) return this.#write(items, met, true);
      throw error;
    }
    for (const [endpointId, , lease] of rows) if (lease === null) this.#quiet.delete(endpointId);
    return new Map(rows.map(([endpointId, seq, lease]) => [keyOf(endpointId, seq), lease]));
  }

  #taken(
    { endpointId, terms, claims }: Met,
    items: readonly Submission[],
    added: Added,
  ): Handed | Promise<Handed> {
    const byLease = new Map(claims.map((claim) => [claim.lease, claim]));
    const taken = items.flatMap(({ whole: { job, payloads } }): TakenJob[] => {
      const claim = byLease.get(added.get(keyOf(job.endpointId, job.seq)) ?? '');
      return claim === undefined ? [] : [{ job: terms.begin(job, claim).job, request: payloads.request }];
    });
    // Others waited before them, or it is not known here who comes first.
    return taken.length > 0
      ? { taken, bundle: undefined, passedOver: false }
      : this.#takeWaiting(endpointId, claims.length === 0 ? terms : { ...terms, claims: () => claims });
  }

  async #takeWaiting(endpointId: string, terms: TakeTerms): Promise<Handed> {
    const claims = terms.claims();
    const handed = await this.#takes.take(endpointId, terms, claims);
    if (handed.passedOver) terms.onPassedOver?.();
    else if (handed.taken.length < claims.length) this.#quiet.add(endpointId);
    return handed;
  }
}

/** Those of one queue share places. Whoever has a key may be there already, and waits alone. */
function placesOf(items: readonly Submission[]): Place[] {
  const canShare = ({ idempotency, whole: { job } }: Submission): boolean =>
    idempotency === undefined && job.position === job.seq;
  return [
    ...placesTogether(items.filter(canShare).map(arriving)),
    ...items.filter((item) => !canShare(item)).map(alone),
  ];
}

function alone(item: Submission): Place {
  return placeAlone(arriving(item));
}

function arriving({ whole: { job, payloads } }: Submission): Arrival {
  return { job, request: payloads.request };
}

/** Whether they are of one queue, where the first that came is the first to go. */
function areAlike(items: readonly Submission[]): boolean {
  const [first] = items;
  return items.every(
    ({ whole: { job } }) =>
      job.accountId === first?.whole.job.accountId && job.lowPriority === first.whole.job.lowPriority,
  );
}
