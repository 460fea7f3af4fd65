import { BerthError } from '../support/errors.ts';
import type { LeaderElection } from './leader-election.ts';
import { LEASE_MS } from './lease-store.ts';
import type { LeaseStore } from './lease-store.ts';

/** Three renewals in a row may fail or be late before the lead is lost. */
const RENEW_EVERY_MS = 600;
/** The server that leads may give the lease back, and the news of it may get lost. */
const CHECK_INTERVAL_MS = 1_000;
/** A lease that has ended could not be taken: a last transaction of its holder is under way. */
const TAKE_AGAIN_AFTER_MS = 100;
const PAUSE_AFTER_FAILURE_MS = 400;
/** A database that has answered nothing for this long is cut off: pending queries fail. */
const CUT_OFF_AFTER_MS = 8_000;

export interface LeaseElectionOptions {
  server: string;
  /** Given what is called when its connection breaks between two calls. */
  connect(onDisconnected: (error: Error) => void): LeaseStore;
  onError(error: Error): void;
  /** The database has been silent for too long. Called again as long as it is. */
  onCutOff(): void;
  /** The lead is free. */
  onResigned(): void;
}

/**
 * Of several servers on one database one leads: the holder of a lease, which it renews while it runs. The
 * others take the lease at the moment at which it ends. The epoch counts the holders; a former one that wakes up
 * finds another epoch and changes nothing. By its own monotonic clock a holder stops before its lease ends, since
 * it counts from before it asked.
 */
export class LeaseElection implements LeaderElection {
  readonly #options: LeaseElectionOptions;
  readonly #leases: LeaseStore;
  #timer: NodeJS.Timeout | undefined;
  #attempt: Promise<void> | undefined;
  #wokenDuringAttempt = false;
  /** Until the next attempt. */
  #pauseMs = 0;
  #onLead: () => void = () => undefined;
  #onLost: () => void = () => undefined;
  /** Undefined while another server leads. */
  #epoch: number | undefined;
  #leadsUntil = -Infinity;
  #answeredAt = performance.now();
  #isStarted = false;
  #isClosed = false;

  constructor(options: LeaseElectionOptions) {
    this.#options = options;
    this.#leases = options.connect((error) => this.#fail(error));
  }

  start(onLead: () => void, onLost: () => void): void {
    this.#onLead = onLead;
    this.#onLost = onLost;
    this.#isStarted = true;
    this.wake();
  }

  isLeading(): boolean {
    return this.#epoch !== undefined && performance.now() < this.#leadsUntil;
  }

  isElected(): boolean {
    return this.#epoch !== undefined;
  }

  *fence(): ReturnType<LeaderElection['fence']> {
    if (!(yield* this.#leases.fence(this.#options.server, this.#epoch ?? -1)))
      throw new BerthError('unavailable', 'another server is the leader now; nothing was changed, try again');
  }

  /** Looks now. Before the start, when nobody could take up the duties of a leader, it does nothing. */
  wake(): void {
    if (!this.#isStarted) return;
    if (this.#attempt !== undefined) this.#wokenDuringAttempt = true;
    if (this.#isClosed || this.#attempt !== undefined) return;
    clearTimeout(this.#timer);
    this.#wokenDuringAttempt = false;
    this.#attempt = this.#try().finally(() => {
      this.#attempt = undefined;
      if (this.#isClosed) return;
      if (this.#wokenDuringAttempt) return this.wake();
      this.#timer = setTimeout(() => this.wake(), this.#pauseMs);
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
      await this.#leases.release(this.#options.server, epoch);
      this.#options.onResigned();
    } catch {
      // The lease runs out by itself.
    }
  }

  async close(): Promise<void> {
    await this.resign();
    await this.#leases.close();
  }

  async #try(): Promise<void> {
    const requestedAt = performance.now();
    try {
      const epoch = this.#epoch === undefined ? await this.#takeOver() : await this.#renew(this.#epoch);
      this.#answeredAt = performance.now();
      if (epoch !== undefined) this.#pauseMs = RENEW_EVERY_MS;
      this.#changeEpoch(epoch, requestedAt);
    } catch (error) {
      this.#pauseMs = PAUSE_AFTER_FAILURE_MS;
      this.#fail(error instanceof Error ? error : new Error(String(error)));
    }
  }

  async #takeOver(): Promise<number | undefined> {
    const heldForMs = await this.#leases.heldForMs();
    this.#pauseMs = heldForMs === 0 ? TAKE_AGAIN_AFTER_MS : Math.min(heldForMs, CHECK_INTERVAL_MS);
    if (heldForMs > 0 || this.#isClosed) return undefined;
    return this.#leases.takeOver(this.#options.server);
  }

  async #renew(epoch: number): Promise<number | undefined> {
    this.#pauseMs = 0;
    return (await this.#leases.renew(this.#options.server, epoch)) ? epoch : undefined;
  }

  #changeEpoch(epoch: number | undefined, requestedAt: number): void {
    const before = this.#epoch;
    this.#epoch = epoch;
    this.#leadsUntil = epoch === undefined ? -Infinity : requestedAt + LEASE_MS;
    if (before !== undefined && before !== epoch) this.#onLost();
    // One that is being closed hands over what it just got.
    if (epoch !== undefined && before !== epoch && !this.#isClosed) this.#onLead();
  }

  /** A server that answers with an error is there; one that does not answer at all may be cut off. */
  #fail(error: Error): void {
    const { onError, onCutOff } = this.#options;
    if (this.#isClosed) return;
    onError(error);
    this.#leases.reconnect();
    if (this.#epoch !== undefined && performance.now() >= this.#leadsUntil)
      this.#changeEpoch(undefined, performance.now());
    if (performance.now() - this.#answeredAt > CUT_OFF_AFTER_MS) onCutOff();
  }
}
