import { closeSync, fdatasync, fdatasyncSync, openSync } from 'node:fs';
import { BerthError } from '../../support/errors.ts';
import { NO_OBSERVER } from '../store-observer.ts';
import type { StoreObserver } from '../store-observer.ts';

/** Brings to the disk what was committed. */
export interface DiskSync {
  /** At once, while everything else waits: for the end of the program. */
  sync(): void;
  /** Beside everything else. What is committed while a sync runs shares the next one. */
  syncInBackground(): Promise<void>;
  /** Resolves when all that is committed now is on the disk; undefined where it is. */
  readonly pending: Promise<void> | undefined;
  /** A sync failed, and none has gone well since: what is committed may not be on the disk. */
  readonly hasFailed: boolean;
}

/** Brings a file to the disk, on another thread. */
export type SyncFile = (descriptor: number, done: (error: Error | null) => void) => void;

/**
 * Syncs the write-ahead log. SQLite would do it with fsync, which also waits for the time of the
 * last change of the file, and so for a second write of the disk; the log needs its data alone.
 * SQLite itself still syncs the log and the database around a checkpoint.
 *
 * After a sync that failed, the system may have forgotten what it could not write, and the next one
 * would succeed without it. So what the log holds is then brought into the database (`rescue`),
 * which writes all of it anew; until that goes well, nothing counts as synced.
 */
export class WalSync implements DiskSync {
  readonly #file: string;
  #opened: number | undefined;
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  readonly #rescue: () => void;
  readonly #syncFile: SyncFile;
  readonly #observer: StoreObserver;
  #hasFailed = false;

  constructor(database: string, rescue: () => void, syncFile?: SyncFile, observer = NO_OBSERVER) {
    this.#observer = observer;
    this.#file = `${database}-wal`;
    this.#rescue = rescue;
    this.#syncFile = syncFile ?? ((descriptor, done) => fdatasync(descriptor, done));
  }

  get pending(): Promise<void> | undefined {
    return this.#next ?? this.#running;
  }

  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  sync(): void {
    try {
      if (this.#hasFailed) this.#rescue();
      else fdatasyncSync(this.#descriptor());
      this.#hasFailed = false;
    } catch (error) {
      this.#hasFailed = true;
      throw syncFailed(error);
    }
  }

  syncInBackground(): Promise<void> {
    if (this.#running === undefined) return this.#start();
    this.#next ??= this.#running.then(
      () => this.#start(),
      () => this.#start(),
    );
    return this.#next;
  }

  close(): void {
    if (this.#opened !== undefined) closeSync(this.#opened);
    this.#opened = undefined;
  }

  #start(): Promise<void> {
    this.#next = undefined;
    if (this.#hasFailed) return Promise.try(() => this.sync());
    const { promise: running, resolve, reject } = Promise.withResolvers<void>();
    const start = performance.now();
    const ended = (error: Error | null): void => {
      if (this.#running === running) this.#running = undefined;
      this.#observer.synced(performance.now() - start);
      this.#hasFailed ||= error !== null;
      if (error === null) resolve();
      else reject(syncFailed(error));
    };
    this.#running = running;
    try {
      this.#syncFile(this.#descriptor(), ended);
    } catch (error) {
      ended(error as Error);
    }
    return running;
  }

  #descriptor(): number {
    this.#opened ??= openSync(this.#file, 'r+');
    return this.#opened;
  }
}

/** Whatever it was, it may go well later. That nothing was changed cannot be said: a power cut decides. */
function syncFailed(cause: unknown): BerthError {
  return new BerthError('unavailable', 'the disk that holds the data directory did not confirm a write', {
    cause,
  });
}
