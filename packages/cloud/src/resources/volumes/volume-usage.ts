import { opendir, lstat } from 'node:fs/promises';
import { join } from 'node:path';
import { isPermissionError } from '../../support/permission-error.ts';
import { isMissingPathError } from './directory-handle.ts';

/** How old a measurement may be, in times of what it took: counting takes a twentieth of the time at most, and what pods write is seen soon where there is little to count. */
const MAX_AGE_FACTOR = 20;
const MAX_AGE_MS = { least: 100, most: 300_000 };

export interface VolumeUsage {
  /** Of all files. */
  bytes: number;
  files: number;
}

interface Measurement {
  usage: VolumeUsage;
  until: number;
  /** Bytes that came and went over S3 since it was measured. */
  since: number;
}

/** How much lies in a folder. Counting takes time where there is much to count, so it is remembered, and what is written through Berth is added up in between. */
export class VolumeUsageMeter {
  readonly #folders: readonly string[];
  #known: Measurement | undefined;
  #measuring: Promise<Measurement> | undefined;
  #promised = 0;

  constructor(folders: readonly string[]) {
    this.#folders = folders;
  }

  async current(): Promise<VolumeUsage> {
    return this.#shown(await this.#current());
  }

  /**
   * Promises room for bytes that are about to be written. `check` may throw to refuse, with what is
   * used and promised so far: many may wait for one measurement, and each has to see the promises of
   * those before it. Answers the way to say that the bytes came, or that nothing came of it.
   */
  async reserve(bytes: number, check: (used: number) => void): Promise<(done: boolean) => void> {
    const known = await this.#current();
    check(this.#shown(known).bytes + this.#promised);
    this.#promised += bytes;
    let settled = false;
    return (done) => {
      if (settled) return;
      settled = true;
      this.#promised -= bytes;
      if (done) this.adjust(bytes);
    };
  }

  adjust(bytes: number): void {
    if (this.#known !== undefined) this.#known.since += bytes;
  }

  async #current(): Promise<Measurement> {
    if (this.#known !== undefined && performance.now() < this.#known.until) return this.#known;
    this.#measuring ??= this.#measure().finally(() => (this.#measuring = undefined));
    return this.#measuring;
  }

  #shown({ usage, since }: Measurement): VolumeUsage {
    return { files: usage.files, bytes: Math.max(0, usage.bytes + since) };
  }

  async #measure(): Promise<Measurement> {
    const usage: VolumeUsage = { bytes: 0, files: 0 };
    const began = performance.now();
    for (const folder of this.#folders) await addDirectoryUsage(folder, usage);
    const now = performance.now();
    this.#known = {
      usage,
      until: now + Math.min(MAX_AGE_MS.most, Math.max(MAX_AGE_MS.least, MAX_AGE_FACTOR * (now - began))),
      since: 0,
    };
    return this.#known;
  }
}

/** Links are not followed. What goes while it is counted is not counted, nor is what may not be looked at. */
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
