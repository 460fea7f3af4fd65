import { createRequire } from 'node:module';
import type * as Pg from 'pg';
import { BerthError } from '../../support/errors.ts';
import type { LeaderElection } from '../leader-election.ts';
import { row, sql } from '../sql.ts';
import { SESSION_OPTIONS } from './session-options.ts';

/** Without a renewal the lead is free after this time, by the clock of the database. */
export const LEASE_MS = 3_000;
const RENEW_EVERY_MS = 1_000;
const TRY_EVERY_MS = 400;
const ANSWER_TIMEOUT_MS = 2_000;
/** A database that has answered nothing for this long is cut off: what waits for it is told so. */
const CUT_OFF_AFTER_MS = 8_000;
/**
 * A transaction of the leader that stands still is ended by the database, so that it cannot keep others from
 * taking over.
 */
const STANDSTILL_MS = 2_500;
/** The lock that servers before the lease held while they led. */
const OLD_LOCK = `exists (select from pg_locks where locktype = 'advisory' and classid = 0 and objid = 8484002
  and granted and database = (select oid from pg_database where datname = current_database()))`;
const NOW = '(extract(epoch from clock_timestamp()) * 1000)::bigint';

export interface LeaseElectionOptions {
  url: string;
  server: string;
  onError(error: Error): void;
  /** The database has been silent for too long. Called again as long as it is. */
  onCutOff(): void;
  /** The lead is free. */
  onResigned(): void;
}

/**
 * Of several servers on one database one leads: the holder of a lease, which it renews every second. The epoch counts
 * the holders; a former one that wakes up finds another epoch and changes nothing. By its own monotonic clock a holder
 * stops before its lease ends, since it counts from before it asked.
 */
export class LeaseElection implements LeaderElection {
  readonly #options: LeaseElectionOptions;
  readonly #pg: typeof Pg;
  #client: Pg.Client | undefined;
  #timer: NodeJS.Timeout | undefined;
  #attempt: Promise<void> | undefined;
  #onLead: () => void = () => undefined;
  #onLost: () => void = () => undefined;
  /** Undefined while another server leads. */
  #epoch: number | undefined;
  #leadsUntil = -Infinity;
  #answeredAt = performance.now();
  #isClosed = false;

  constructor(options: LeaseElectionOptions) {
    this.#options = options;
    this.#pg = createRequire(import.meta.url)('pg') as typeof Pg;
  }

  start(onLead: () => void, onLost: () => void): void {
    this.#onLead = onLead;
    this.#onLost = onLost;
    this.wake();
  }

  isLeading(): boolean {
    return this.#epoch !== undefined && performance.now() < this.#leadsUntil;
  }

  isElected(): boolean {
    return this.#epoch !== undefined;
  }

  *fence(): ReturnType<LeaderElection['fence']> {
    const held = yield* row(
      sql`select set_config('idle_in_transaction_session_timeout', ${String(STANDSTILL_MS)}, true) from leadership
        where name = 'leader' and holder = ${this.#options.server} and epoch = ${this.#epoch ?? -1} for key share`,
    );
    if (held === undefined)
      throw new BerthError('unavailable', 'another server leads by now; this one has changed nothing');
  }

  wake(): void {
    if (this.#isClosed || this.#attempt !== undefined) return;
    clearTimeout(this.#timer);
    this.#attempt = this.#try().finally(() => {
      this.#attempt = undefined;
      if (this.#isClosed) return;
      const pause = this.#epoch === undefined ? TRY_EVERY_MS : RENEW_EVERY_MS;
      this.#timer = setTimeout(() => this.wake(), pause);
    });
  }

  async resign(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#attempt;
    const epoch = this.#epoch;
    this.#epoch = undefined;
    if (epoch === undefined) return;
    try {
      await this.#client?.query(
        `update leadership set expires_at = 0 where name = 'leader' and holder = $1 and epoch = $2`,
        [this.#options.server, epoch],
      );
      this.#options.onResigned();
    } catch {
      // The lease runs out by itself.
    }
  }

  async close(): Promise<void> {
    await this.resign();
    await this.#client?.end().catch(() => undefined);
  }

  async #try(): Promise<void> {
    const askedAt = performance.now();
    try {
      const client = await this.#connected();
      const epoch = this.#epoch === undefined ? await this.#takeOver(client) : await this.#renew(client);
      this.#answeredAt = performance.now();
      this.#changeEpoch(epoch, askedAt);
    } catch (error) {
      this.#fail(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #changeEpoch(epoch: number | undefined, askedAt: number): void {
    const before = this.#epoch;
    this.#epoch = epoch;
    this.#leadsUntil = epoch === undefined ? -Infinity : askedAt + LEASE_MS;
    if (before !== undefined && before !== epoch) this.#onLost();
    // One that is being closed hands over what it just got.
    if (epoch !== undefined && before !== epoch && !this.#isClosed) this.#onLead();
  }

  /** A server that answers with an error is there; one that does not answer at all may be cut off. */
  #fail(error: Error): void {
    const { onError, onCutOff } = this.#options;
    if (this.#isClosed) return;
    onError(error);
    this.#drop();
    if (this.#epoch !== undefined && performance.now() >= this.#leadsUntil)
      this.#changeEpoch(undefined, performance.now());
    if (performance.now() - this.#answeredAt > CUT_OFF_AFTER_MS) onCutOff();
  }

  #drop(): void {
    const client = this.#client;
    this.#client = undefined;
    client?.end().catch(() => undefined);
  }

  async #connected(): Promise<Pg.Client> {
    if (this.#client !== undefined) return this.#client;
    const client = new this.#pg.Client({
      connectionString: this.#options.url,
      application_name: 'berth leadership',
      options: SESSION_OPTIONS,
      keepAlive: true,
      query_timeout: ANSWER_TIMEOUT_MS,
      connectionTimeoutMillis: ANSWER_TIMEOUT_MS,
    });
    this.#client = client;
    client.on('error', (error) => {
      if (this.#client === client) this.#fail(error);
    });
    await client.connect();
    return client;
  }

  async #renew(client: Pg.Client): Promise<number | undefined> {
    const { rowCount } = await client.query(
      `update leadership set expires_at = ${NOW} + $3 where name = 'leader' and holder = $1 and epoch = $2
        and not ${OLD_LOCK}`,
      [this.#options.server, this.#epoch, LEASE_MS],
    );
    return rowCount === 1 ? this.#epoch : undefined;
  }

  /**
   * The row is locked as for a deletion: that waits for transactions of the last leader, which `fence` has
   * let in.
   */
  async #takeOver(client: Pg.Client): Promise<number | undefined> {
    const free = `name = 'leader' and expires_at <= ${NOW} and not ${OLD_LOCK}`;
    const { rowCount } = await client.query(`select 1 from leadership where ${free}`);
    if (rowCount !== 1 || this.#isClosed) return undefined;
    const answer = await client.query<{ epoch: string }>(
      `with free as (select name from leadership where ${free} for update skip locked)
        update leadership set holder = $1, epoch = epoch + 1, expires_at = ${NOW} + $2
        where name in (select name from free) returning epoch`,
      [this.#options.server, LEASE_MS],
    );
    const epoch = answer.rows[0]?.epoch;
    return epoch === undefined ? undefined : Number(epoch);
  }
}
