import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../support/clock.ts';
import { isDiskFull } from '../../support/disk-reserve.ts';

const REMOVED_FILE = 'removed';

/** The log folders of all instances. The log of a removed instance is kept for the retention time. */
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

  /** The instance exists: its log is kept as long as the instance. */
  async retain(id: string): Promise<void> {
    await rm(join(this.folder(id), REMOVED_FILE), { force: true });
  }

  /** The instance was removed: the retention time starts now. On a full disk the log is deleted. */
  async startRetention(id: string): Promise<void> {
    if ((await stat(this.folder(id)).catch(() => undefined)) === undefined) return;
    try {
      await writeFile(join(this.folder(id), REMOVED_FILE), String(this.#clock.now()), { mode: 0o600 });
    } catch (error) {
      if (!isDiskFull(error)) throw error;
      await this.delete(id);
    }
  }

  /** Deletes the log at once. */
  async delete(id: string): Promise<void> {
    await rm(this.folder(id), { recursive: true, force: true });
  }

  /** Deletes logs after their retention time. For logs without an instance, the retention time starts now. */
  async deleteExpired(exists: (id: string) => boolean): Promise<void> {
    for (const id of await readdir(this.#path).catch(() => [])) {
      if (exists(id)) continue;
      const removedAt = await readFile(join(this.folder(id), REMOVED_FILE), 'utf8').catch(() => undefined);
      if (removedAt === undefined) await this.startRetention(id);
      else if (this.#clock.now() - Number(removedAt) >= this.#keepMs) await this.delete(id);
    }
  }
}
