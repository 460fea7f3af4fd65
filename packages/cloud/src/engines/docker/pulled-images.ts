import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Clock } from '../../support/clock.ts';
import { parseReference, referenceProblem } from '../image-reference.ts';
import type { Daemon } from './daemon.ts';
import { daemonStatus, isNotFound } from './client/docker.errors.ts';

/** A container uses it, or another tag names it. */
const CONFLICT = 409;

/**
 * The images that this server pulled, with the time of the last start from each. Only they are ever deleted:
 * what people built or pulled themselves is theirs.
 */
export class PulledImages {
  readonly #file: string;
  readonly #clock: Clock;
  #lastUsed: Promise<Map<string, number>> | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(file: string, clock: Clock) {
    this.#file = file;
    this.#clock = clock;
  }

  /** A container starts from it. */
  async use(image: string, wasPulled: boolean): Promise<void> {
    const lastUsed = await this.#read();
    const { full } = parseReference(image);
    if (!wasPulled && !lastUsed.has(full)) return;
    lastUsed.set(full, this.#clock.now());
    await this.#write(lastUsed);
  }

  /** Deletes those that are not in use and from which nothing was started since then, and answers which. */
  async prune(daemon: Daemon, unusedSince: number, inUse: ReadonlySet<string>): Promise<string[]> {
    const lastUsed = await this.#read();
    const kept = new Set(
      [...inUse]
        .filter((image) => referenceProblem(image) === undefined)
        .map((image) => parseReference(image).full),
    );
    const removed: string[] = [];
    for (const [image, at] of [...lastUsed]) {
      if (at >= unusedSince || kept.has(image)) continue;
      try {
        await daemon.call((client) => client.delete(`/images/${image}`));
        removed.push(image);
      } catch (error) {
        if (daemonStatus(error) === CONFLICT) continue;
        if (!isNotFound(error)) throw error;
      }
      lastUsed.delete(image);
    }
    await this.#write(lastUsed);
    return removed;
  }

  #read(): Promise<Map<string, number>> {
    this.#lastUsed ??= readFile(this.#file, 'utf8')
      .then((text) => new Map(Object.entries(JSON.parse(text) as Record<string, number>)))
      // Without the list nothing is deleted, and it begins again.
      .catch(() => new Map());
    return this.#lastUsed;
  }

  #write(lastUsed: ReadonlyMap<string, number>): Promise<void> {
    this.#writing = this.#writing
      .catch(() => undefined)
      .then(async () => {
        await mkdir(dirname(this.#file), { recursive: true });
        const temporary = `${this.#file}.new`;
        await writeFile(temporary, JSON.stringify(Object.fromEntries(lastUsed)), { mode: 0o600 });
        await rename(temporary, this.#file);
      });
    return this.#writing;
  }
}
