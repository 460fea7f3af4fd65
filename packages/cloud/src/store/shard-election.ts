import { BerthError } from '../support/errors.ts';
import { LEASE_MS } from './lease-store.ts';
import type { HeldShard, ShardLeases, ShardLeaseStore } from './shard-lease-store.ts';
import { shareOut } from './shard-share.ts';
import type { Steps } from './sql.ts';

/** As for the lease of the leader: three renewals in a row may fail or be late. */
const ROUND_MS = 600;
const TAKE_AGAIN_AFTER_MS = 100;
const PAUSE_AFTER_FAILURE_MS = 400;
/** A shard that is free for this long is taken by anybody: whose turn it is may be frozen. */
const OVERDUE_AFTER_MS = 700;
/** For so long a shard with starts under way is kept, though this server has too many. */
const KEEP_BUSY_MS = 10_000;

export interface ShardElectionOptions {
  shards: number;
  server: string;
  /** Given what is called when its connection breaks between two calls. */
  connect(onDisconnected: (error: Error) => void): ShardLeaseStore;
  onError(error: Error): void;
  /** A shard is free. */
  onReleased(): void;
}

export interface ShardDuties {
  /** Servers of one host take part as one. */
  hostId: string;
  onLead(shard: number): void;
  onLost(shard: number): void;
  /** Something has begun there that would be interrupted by giving it to another server. */
  isBusy(shard: number): boolean;
}

/**
 * The endpoints are divided into shards, and each shard has a lease like that of the leader (`lease-election.ts`): with an epoch
 * that fences out earlier holders, and an end before which its holder stops by its own clock. All leases of a server are
 * renewed together. In every round a server takes what is free, as far as that is its share, or returns one.
 */
export class ShardElection {
  readonly shards: number;
  readonly #options: ShardElectionOptions;
  readonly #leases: ShardLeaseStore;
  readonly #held = new Map<number, { epoch: number; until: number }>();
  readonly #freeSince = new Map<number, number>();
  #duties: ShardDuties | undefined;
  #timer: NodeJS.Timeout | undefined;
  #attempt: Promise<void> | undefined;
  #wokenDuringAttempt = false;
  #excessSince: number | undefined;
  /** Until the next round. */
  #pauseMs = 0;
  #isClosed = false;

  constructor(options: ShardElectionOptions) {
    this.#options = options;
    this.shards = options.shards;
    this.#leases = options.connect((error) => this.#fail(error));
  }

  start(duties: ShardDuties): void {
    this.#duties = duties;
    this.wake();
  }

  /** Whether this server may act for the shard at this moment. */
  isLeading(shard: number): boolean {
    const lease = this.#held.get(shard);
    return lease !== undefined && performance.now() < lease.until;
  }

  /** The same, also while the lease is being renewed late. For views alone. */
  isElected(shard: number): boolean {
    return this.#held.has(shard);
  }

  /** How many this server may act for at this moment. */
  get heldCount(): number {
    return [...this.#held.keys()].filter((shard) => this.isLeading(shard)).length;
  }

  /** First steps of a transaction that only the holder of the shard may commit. */
  *fence(shard: number): Steps<void> {
    const epoch = this.#held.get(shard)?.epoch ?? -1;
    if (!(yield* this.#leases.fence(this.#options.server, { shard, epoch })))
      throw new BerthError(
        'unavailable',
        'another server manages the workers of this endpoint now; nothing was changed, try again',
      );
  }

  /** Looks now. */
  wake(): void {
    if (this.#duties === undefined) return;
    if (this.#attempt !== undefined) this.#wokenDuringAttempt = true;
    if (this.#isClosed || this.#attempt !== undefined) return;
    clearTimeout(this.#timer);
    this.#wokenDuringAttempt = false;
    this.#attempt = this.#try(this.#duties).finally(() => {
      this.#attempt = undefined;
      if (this.#isClosed) return;
      if (this.#wokenDuringAttempt) return this.wake();
      this.#timer = setTimeout(() => this.wake(), this.#pauseMs);
    });
  }

  /** Hands over all shards and takes no part any more. */
  async resign(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#attempt;
    const held = [...this.#held].map(([shard, { epoch }]) => ({ shard, epoch }));
    for (const { shard } of held) this.#lose(shard);
    if (this.#duties === undefined) return;
    try {
      await this.#leases.leave(this.#options.server);
      await this.#leases.release(this.#options.server, held);
      this.#options.onReleased();
    } catch {
      // They run out by themselves.
    }
  }

  async close(): Promise<void> {
    if (!this.#isClosed) await this.resign();
    await this.#leases.close();
  }

  async #try(duties: ShardDuties): Promise<void> {
    try {
      await this.#round(duties);
    } catch (error) {
      this.#pauseMs = PAUSE_AFTER_FAILURE_MS;
      this.#fail(error instanceof Error ? error : new Error(String(error)));
    }
  }

  async #round(duties: ShardDuties): Promise<void> {
    const { server } = this.#options;
    const requestedAt = performance.now();
    const held = [...this.#held].map(([shard, { epoch }]): HeldShard => ({ shard, epoch }));
    const found = await this.#leases.renew(server, duties.hostId, held);
    this.#pauseMs = ROUND_MS;
    // One that is not renewed is taken at the moment at which it ends.
    for (const { holder, heldForMs } of found.leases)
      if (holder !== '' && holder !== server)
        this.#pauseMs = Math.min(this.#pauseMs, Math.max(heldForMs, TAKE_AGAIN_AFTER_MS));
    this.#apply(found, requestedAt);
    if (this.#isClosed) return;
    const { take, excess } = shareOut(
      { holders: found.leases.map(({ holder }) => holder || undefined), members: found.members },
      server,
      (shard) => performance.now() - (this.#freeSince.get(shard) ?? Infinity) >= OVERDUE_AFTER_MS,
    );
    if (take.length > 0) await this.#take(take, duties);
    if (excess > 0) await this.#releaseExcess(duties);
    else this.#excessSince = undefined;
  }

  #apply({ leases }: ShardLeases, requestedAt: number): void {
    for (const { shard, holder, epoch } of leases) {
      const own = this.#held.get(shard);
      if (own !== undefined) {
        if (holder === this.#options.server && epoch === own.epoch) own.until = requestedAt + LEASE_MS;
        else this.#lose(shard);
      }
      if (holder !== '') this.#freeSince.delete(shard);
      else if (!this.#freeSince.has(shard)) this.#freeSince.set(shard, performance.now());
    }
  }

  async #take(shards: readonly number[], duties: ShardDuties): Promise<void> {
    const requestedAt = performance.now();
    const taken = await this.#leases.takeOver(this.#options.server, shards);
    // A last transaction of a former holder may be under way.
    if (taken.length < shards.length) this.#pauseMs = TAKE_AGAIN_AFTER_MS;
    for (const { shard, epoch } of taken) {
      this.#freeSince.delete(shard);
      this.#held.set(shard, { epoch, until: requestedAt + LEASE_MS });
      // One that is being closed hands over what it just got.
      if (!this.#isClosed) duties.onLead(shard);
    }
  }

  /** One at a time: with each, others may see that it is enough. */
  async #releaseExcess(duties: ShardDuties): Promise<void> {
    this.#excessSince ??= performance.now();
    const shards = [...this.#held.keys()];
    const idle = shards.find((shard) => !duties.isBusy(shard));
    const mayInterrupt = performance.now() - this.#excessSince >= KEEP_BUSY_MS;
    const shard = idle ?? (mayInterrupt ? shards[0] : undefined);
    const lease = shard === undefined ? undefined : this.#held.get(shard);
    if (shard === undefined || lease === undefined) return;
    this.#excessSince = undefined;
    this.#lose(shard);
    await this.#leases.release(this.#options.server, [{ shard, epoch: lease.epoch }]);
    this.#options.onReleased();
  }

  #lose(shard: number): void {
    if (this.#held.delete(shard)) this.#duties?.onLost(shard);
  }

  #fail(error: Error): void {
    if (this.#isClosed) return;
    this.#options.onError(error);
    this.#leases.reconnect();
    for (const [shard, { until }] of this.#held) if (performance.now() >= until) this.#lose(shard);
  }
}
