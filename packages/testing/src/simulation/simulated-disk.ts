import { BerthError } from '../../../cloud/src/support/errors.ts';
import type { DiskSync } from '../../../cloud/src/store/sqlite/wal-sync.ts';
import type { SeededRandom } from '../safety/seeded-random.ts';
import type { VirtualTime } from './virtual-time.ts';

const MAX_SYNC_MS = 3;

/** The disk of a database over a network: what its calls take is the time of the network. */
export const INSTANT_DISK: DiskSync = {
  sync: () => undefined,
  syncInBackground: async () => undefined,
  pending: undefined,
  hasFailed: false,
};

/** The disk below the database: syncs take a while and may fail, and it may be full. */
export class SimulatedDisk implements DiskSync {
  readonly #time: VirtualTime;
  readonly #random: SeededRandom;
  readonly #limitSize: (isLimited: boolean) => void;
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #slowUntil = 0;
  failureRate = 0;
  hasFailed = false;

  constructor(time: VirtualTime, random: SeededRandom, limitSize: (isLimited: boolean) => void) {
    this.#time = time;
    this.#random = random;
    this.#limitSize = limitSize;
  }

  get pending(): Promise<void> | undefined {
    return this.#next ?? this.#running;
  }

  sync(): void {
    this.hasFailed = false;
  }

  syncInBackground(): Promise<void> {
    if (this.#running === undefined) return this.#start();
    this.#next ??= this.#running.then(
      () => this.#start(),
      () => this.#start(),
    );
    return this.#next;
  }

  /** Syncs end at this time at the earliest. */
  stall(milliseconds: number): void {
    this.#slowUntil = this.#time.now + milliseconds;
  }

  fill(): void {
    this.#limitSize(true);
  }

  free(): void {
    this.#limitSize(false);
  }

  #start(): Promise<void> {
    this.#next = undefined;
    const { promise: running, resolve, reject } = Promise.withResolvers<void>();
    this.#running = running;
    const wait = Math.max(this.#random.next() ** 2 * MAX_SYNC_MS, this.#slowUntil - this.#time.now);
    this.#time.after(wait, undefined, () => {
      if (this.#running === running) this.#running = undefined;
      this.hasFailed = this.#random.chance(this.failureRate);
      if (this.hasFailed) reject(new BerthError('unavailable', 'the disk did not confirm a write'));
      else resolve();
    });
    return running;
  }
}
