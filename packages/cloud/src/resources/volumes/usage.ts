import { opendir, lstat } from 'node:fs/promises';
import { join } from 'node:path';
import { isDenied } from '../../support/denied.ts';
import { isAbsence } from './held-folder.ts';

/** How old a measurement may be, in times of what it took: counting takes a twentieth of the time at most, and what pods write is seen soon where there is little to count. */
const FRESH_TIMES = 20;
const FRESH_MS = { least: 100, most: 300_000 };

export interface VolumeUsage {
  /** Of all files. */
  bytes: number;
  files: number;
}

interface Known {
  usage: VolumeUsage;
  until: number;
  /** Bytes that came and went over S3 since it was measured. */
  since: number;
}

/** How much lies in a folder. Counting takes time where there is much to count, so it is remembered, and what is written through Berth is added up in between. */
export class Usage {
  readonly #folders: readonly string[];
  #known: Known | undefined;
  #measuring: Promise<Known> | undefined;
  #promised = 0;

  constructor(folders: readonly string[]) {
    this.#folders = folders;
  }

  async measured(): Promise<VolumeUsage> {
    return this.#shown(await this.#current());
  }

  /**
   * Promises room for bytes that are about to be written. `check` may throw to refuse, with what is
   * used and promised so far: many may wait for one measurement, and each has to see the promises of
   * those before it. Answers the way to say that the bytes came, or that nothing came of it.
   */
  async promise(bytes: number, check: (used: number) => void): Promise<(done: boolean) => void> {
    const known = await this.#current();
    check(this.#shown(known).bytes + this.#promised);
    this.#promised += bytes;
    let settled = false;
    return (done) => {
      if (settled) return;
      settled = true;
      this.#promised -= bytes;
      if (done) this.changed(bytes);
    };
  }

  changed(bytes: number): void {
    if (this.#known !== undefined) this.#known.since += bytes;
  }

  async #current(): Promise<Known> {
    if (this.#known !== undefined && performance.now() < this.#known.until) return this.#known;
    this.#measuring ??= this.#measure().finally(() => (this.#measuring = undefined));
    return this.#measuring;
  }

  #shown({ usage, since }: Known): VolumeUsage {
    return { files: usage.files, bytes: Math.max(0, usage.bytes + since) };
  }

  async #measure(): Promise<Known> {
    const usage: VolumeUsage = { bytes: 0, files: 0 };
    const began = performance.now();
    for (const folder of this.#folders) await addUp(folder, usage);
    const now = performance.now();
    this.#known = {
      usage,
      until: now + Math.min(FRESH_MS.most, Math.max(FRESH_MS.least, FRESH_TIMES * (now - began))),
      since: 0,
    };
    return this.#known;
  }
}

/** Links are not followed. What goes while it is counted is not counted, nor is what may not be looked at. */
async function addUp(folder: string, usage: VolumeUsage): Promise<void> {
  try {
    for await (const entry of await opendir(folder, { bufferSize: 512 })) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) await addUp(path, usage);
      else if (entry.isFile()) {
        usage.bytes += (await lstat(path).catch(whenGone))?.size ?? 0;
        usage.files += 1;
      }
    }
  } catch (error) {
    whenGone(error);
  }
}

function whenGone(error: unknown): undefined {
  if (!isAbsence(error) && !isDenied(error)) throw error;
  return undefined;
}
