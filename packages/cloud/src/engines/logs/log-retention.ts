import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../support/clock.ts';

const REMOVED_FILE = 'removed';

/** The logs of all instances. That of an instance that was removed is kept for a set time. */
export class LogRetention {
  readonly #path: string;
  readonly #keepMs: number;
  readonly #clock: Clock;

  constructor(path: string, keepMs: number, clock: Clock) {
    this.#path = path;
    this.#keepMs = keepMs;
    this.#clock = clock;
  }

  folder(id: string): string {
    return join(this.#path, id);
  }

  /** The instance is there: its log is kept as long as it is. */
  async retain(id: string): Promise<void> {
    await rm(join(this.folder(id), REMOVED_FILE), { force: true });
  }

  /** Its time begins now. */
  async startRetention(id: string): Promise<void> {
    if ((await stat(this.folder(id)).catch(() => undefined)) === undefined) return;
    await writeFile(join(this.folder(id), REMOVED_FILE), String(this.#clock.now()), { mode: 0o600 });
  }

  /** Takes it away before its time. */
  async delete(id: string): Promise<void> {
    await rm(this.folder(id), { recursive: true, force: true });
  }

  /** Takes away what has been kept for long enough. Logs that belong to no instance begin to age. */
  async deleteExpired(isThere: (id: string) => boolean): Promise<void> {
    for (const id of await readdir(this.#path).catch(() => [])) {
      if (isThere(id)) continue;
      const removedAt = await readFile(join(this.folder(id), REMOVED_FILE), 'utf8').catch(() => undefined);
      if (removedAt === undefined) await this.startRetention(id);
      else if (this.#clock.now() - Number(removedAt) >= this.#keepMs) await this.delete(id);
    }
  }
}
