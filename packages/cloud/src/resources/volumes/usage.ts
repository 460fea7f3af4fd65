import { opendir, lstat } from 'node:fs/promises';
import { join } from 'node:path';
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
    const known = this.#known;
    if (known !== undefined && performance.now() < known.until) return this.#shown(known);
    this.#measuring ??= this.#measure().finally(() => (this.#measuring = undefined));
    return this.#shown(await this.#measuring);
  }

  /** Bytes with all that is under way. */
  async promised(): Promise<number> {
    return (await this.measured()).bytes + this.#promised;
  }

  /** Bytes that are about to be written. Answers the way to say that they are, or that nothing came of it. */
  promise(bytes: number): (done: boolean) => void {
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

  #shown({ usage, since }: Known): VolumeUsage {
    return { files: usage.files, bytes: Math.max(0, usage.bytes + since) };
  }

  async #measure(): Promise<Known> {
    const usage: VolumeUsage = { bytes: 0, files: 0 };
    const began = performance.now();
    for (const folder of this.#folders) await addUp(folder, usage);
    const now = performance.now();
    this.#known = { usage, until: now + Math.min(FRESH_MS.most, Math.max(FRESH_MS.least, FRESH_TIMES * (now - began))), since: 0 };
    return this.#known;
  }
}

/** Links are not followed. What goes while it is counted is not counted. */
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
  if (!isAbsence(error) && (error as NodeJS.ErrnoException).code !== 'EACCES') throw error;
  return undefined;
}
