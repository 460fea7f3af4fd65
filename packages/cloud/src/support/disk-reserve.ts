import { execFile } from 'node:child_process';
import { closeSync, ftruncateSync, openSync, rmSync, statfsSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

const FILE = 'reserve';
/**
 * What is released at a time: enough for most transactions, and others get several. Other programs that
 * fill the disk take the rest.
 */
const SLICE_BYTES = 250_000;
/** On a small disk the reserve takes no more than this part of what is free. */
const FREE_SPACE_DIVISOR = 10;

/**
 * A file that only takes space. When the disk of the data folder is full, its space is released in slices,
 * each to a transaction that has just failed, or to the start. New jobs and uploads are refused before that.
 */
export class DiskReserve {
  readonly #folder: string;
  readonly #file: string;
  readonly wantedBytes: number;
  #wholeBytes: number;

  constructor(folder: string, bytes: number) {
    this.#folder = folder;
    this.#file = join(folder, FILE);
    this.wantedBytes = bytes;
    this.#wholeBytes = this.bytes;
  }

  /** The most that it had: on a small disk, less than is wanted. */
  get wholeBytes(): number {
    return this.#wholeBytes;
  }

  get bytes(): number {
    return statSync(this.#file, { throwIfNoEntry: false })?.size ?? 0;
  }

  get freeBytes(): number {
    const { bavail, bsize } = statfsSync(this.#folder);
    return bavail * bsize;
  }

  get totalBytes(): number {
    const { blocks, bsize } = statfsSync(this.#folder);
    return blocks * bsize;
  }

  /** The size that it should have now. */
  get targetBytes(): number {
    return Math.min(this.wantedBytes, Math.floor((this.freeBytes + this.bytes) / FREE_SPACE_DIVISOR));
  }

  /** Gives back a slice, or more; false if there is none beyond what is to be kept. */
  release(keepBytes = 0, wantedBytes = 0): boolean {
    const bytes = Math.max(SLICE_BYTES, wantedBytes);
    const left = this.bytes - bytes;
    if (keepBytes > 0 ? left < keepBytes : left <= -bytes) return false;
    try {
      if (left > 0) {
        const file = openSync(this.#file, 'r+');
        ftruncateSync(file, left);
        closeSync(file);
      } else rmSync(this.#file);
      return true;
    } catch {
      return false;
    }
  }

  /** Repeats it with more space from the reserve while it fails for lack of space. */
  use<T>(work: () => T): T {
    for (;;) {
      try {
        return work();
      } catch (error) {
        if (!isDiskFull(error) || !this.release()) throw error;
      }
    }
  }

  /** Takes space up to the target. */
  async fill(): Promise<void> {
    const target = this.targetBytes;
    const { bytes } = this;
    if (bytes > target && this.wantedBytes === 0) rmSync(this.#file, { force: true });
    if (bytes >= target) return;
    await run('fallocate', ['--length', String(target), this.#file]).catch(() => this.#write(bytes, target));
    this.#wholeBytes = Math.max(this.#wholeBytes, this.bytes);
  }

  /** Where the file system or the machine has no fallocate. */
  async #write(from: number, to: number): Promise<void> {
    const file = await open(this.#file, 'a', 0o600);
    try {
      const piece = Buffer.alloc(SLICE_BYTES);
      for (let at = from; at < to; at += piece.length)
        await file.write(piece, 0, Math.min(piece.length, to - at));
    } finally {
      await file.close();
    }
  }
}

export function isDiskFull(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  return code === 'ENOSPC' || code === 'EDQUOT';
}
