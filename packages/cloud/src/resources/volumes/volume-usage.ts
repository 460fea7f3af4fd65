import { opendir, lstat } from 'node:fs/promises';
import { join } from 'node:path';
import { isPermissionError } from '../../support/permission-error.ts';
import { isMissingPathError } from '../../support/directory-handle.ts';

/**
 * A measurement is reused for this many times its own duration: measuring takes at most 5 % of the time, and
 * small volumes are measured often.
 */
const MAX_AGE_FACTOR = 20;
const MAX_AGE_MS = { least: 100, most: 300_000 };

export interface VolumeUsage {
  /** The total size of all files. */
  bytes: number;
  files: number;
}

interface Measurement {
  usage: VolumeUsage;
  until: number;
  /** Bytes added and removed over S3 since the measurement. */
  since: number;
}

/**
 * Measures the usage of directories. Measuring a large directory takes long, so the result is cached and
 * adjusted by what is written over S3.
 */
export class VolumeUsageMeter {
  readonly #folders: readonly string[];
  #measured: Measurement | undefined;
  #measuring: Promise<Measurement> | undefined;
  #reserved = 0;

  constructor(folders: readonly string[]) {
    this.#folders = folders;
  }

  async current(): Promise<VolumeUsage> {
    return this.#adjusted(await this.#current());
  }

  /**
   * Reserves space for bytes that are about to be written. `check` gets the used and reserved bytes and
   * throws to refuse. It runs after the measurement, so that requests that waited for the same measurement
   * see each other's reservations. Call the returned function with true when the bytes were written, or with
   * false when they were not.
   */
  async reserve(bytes: number, check: (used: number) => void): Promise<(done: boolean) => void> {
    const known = await this.#current();
    check(this.#adjusted(known).bytes + this.#reserved);
    this.#reserved += bytes;
    let released = false;
    return (done) => {
      if (released) return;
      released = true;
      this.#reserved -= bytes;
      if (done) this.adjust(bytes);
    };
  }

  /** Counts again at the next call: files were deleted without being counted. */
  invalidate(): void {
    this.#measured = undefined;
  }

  adjust(bytes: number): void {
    if (this.#measured !== undefined) this.#measured.since += bytes;
  }

  async #current(): Promise<Measurement> {
    if (this.#measured !== undefined && performance.now() < this.#measured.until) return this.#measured;
    this.#measuring ??= this.#measure().finally(() => (this.#measuring = undefined));
    return this.#measuring;
  }

  #adjusted({ usage, since }: Measurement): VolumeUsage {
    return { files: usage.files, bytes: Math.max(0, usage.bytes + since) };
  }

  async #measure(): Promise<Measurement> {
    const usage: VolumeUsage = { bytes: 0, files: 0 };
    const began = performance.now();
    for (const folder of this.#folders) await addDirectoryUsage(folder, usage);
    const now = performance.now();
    this.#measured = {
      usage,
      until: now + Math.min(MAX_AGE_MS.most, Math.max(MAX_AGE_MS.least, MAX_AGE_FACTOR * (now - began))),
      since: 0,
    };
    return this.#measured;
  }
}

/** Symbolic links are not followed. Files that disappear or cannot be read are not counted. */
async function addDirectoryUsage(folder: string, usage: VolumeUsage): Promise<void> {
  try {
    for await (const entry of await opendir(folder, { bufferSize: 512 })) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) await addDirectoryUsage(path, usage);
      else if (entry.isFile()) {
        usage.bytes += (await lstat(path).catch(ignoreMissing))?.size ?? 0;
        usage.files += 1;
      }
    }
  } catch (error) {
    ignoreMissing(error);
  }
}

function ignoreMissing(error: unknown): undefined {
  if (!isMissingPathError(error) && !isPermissionError(error)) throw error;
  return undefined;
}
