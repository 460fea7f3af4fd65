import { closeSync, fdatasync, fdatasyncSync, openSync } from 'node:fs';

/** Brings to the disk what was committed. */
export interface Disk {
  /** At once, while everything else waits: the quickest way for a single change. */
  sync(): void;
  /** Beside everything else. What is committed while a sync runs shares the next one. */
  syncBeside(): Promise<void>;
  /** Resolves when all that is committed now is on the disk; undefined where it is. */
  readonly pending: Promise<void> | undefined;
}

/**
 * Syncs the write-ahead log. SQLite would do it with fsync, which also waits for the time of the
 * last change of the file, and so for a second write of the disk; the log needs its data alone.
 * SQLite itself still syncs the log and the database around a checkpoint.
 */
export class WalSync implements Disk {
  readonly #file: string;
  #opened: number | undefined;
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;

  constructor(database: string) {
    this.#file = `${database}-wal`;
  }

  get pending(): Promise<void> | undefined {
    return this.#next ?? this.#running;
  }

  sync(): void {
    fdatasyncSync(this.#descriptor());
  }

  syncBeside(): Promise<void> {
    if (this.#running === undefined) return this.#start();
    this.#next ??= this.#running.then(() => this.#start(), () => this.#start());
    return this.#next;
  }

  close(): void {
    if (this.#opened !== undefined) closeSync(this.#opened);
    this.#opened = undefined;
  }

  #start(): Promise<void> {
    this.#next = undefined;
    const running = new Promise<void>((resolve, reject) => {
      fdatasync(this.#descriptor(), (error) => {
        if (this.#running === running) this.#running = undefined;
        if (error === null) resolve();
        else reject(error);
      });
    });
    this.#running = running;
    return running;
  }

  #descriptor(): number {
    this.#opened ??= openSync(this.#file, 'r+');
    return this.#opened;
  }
}
