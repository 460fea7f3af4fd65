import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { OwnedInstance } from '../../store/overview-store.ts';
import type { Store } from '../../store/store.ts';

export interface LogUsageDeps {
  store: Pick<Store, 'overview' | 'pods'>;
  /** The folders that hold a folder with the log of each instance. */
  folders: readonly string[];
  /** Deletes the log of an instance that has ended. */
  deleteLog(dataCenterId: string, instanceId: string): Promise<void>;
}

/** The space that the logs of an account take on this server. */
export class LogUsage {
  readonly #deps: LogUsageDeps;

  constructor(deps: LogUsageDeps) {
    this.#deps = deps;
  }

  async bytesOf(accountId: string): Promise<number> {
    let sum = 0;
    for (const { id } of await this.#logsOf(accountId)) sum += await this.#sizeOf(id);
    return sum;
  }

  /** Deletes the logs of ended workers, the oldest first, until the account is within its limit. */
  async trim(accountId: string, limit: number): Promise<void> {
    const logs = await this.#logsOf(accountId);
    const sizes = new Map<string, number>();
    for (const { id } of logs) sizes.set(id, await this.#sizeOf(id));
    let used = [...sizes.values()].reduce((sum, size) => sum + size, 0);
    const ended = logs
      .filter((log) => log.endedAt !== null && (sizes.get(log.id) ?? 0) > 0)
      .sort((one, other) => (one.endedAt ?? 0) - (other.endedAt ?? 0));
    for (const { id, dataCenterId } of ended) {
      if (used <= limit) return;
      await this.#deps.deleteLog(dataCenterId, id);
      used -= sizes.get(id) ?? 0;
    }
  }

  /** Deletes the logs of workers and pods that ended before this time. */
  async expire(accountId: string, endedBefore: number): Promise<void> {
    const deleted = (await this.#deps.store.pods.listTerminated(accountId)).map(
      ({ id, dataCenterId, statusChangedAt }) => ({ id, dataCenterId, endedAt: statusChangedAt }),
    );
    for (const { id, dataCenterId, endedAt } of [...(await this.#logsOf(accountId)), ...deleted])
      if (endedAt !== null && endedAt < endedBefore && (await this.#sizeOf(id)) > 0)
        await this.#deps.deleteLog(dataCenterId, id);
  }

  /** The account's instances that have a log here. Most of its pods may never have run. */
  async #logsOf(accountId: string): Promise<OwnedInstance[]> {
    const names = await Promise.all(this.#deps.folders.map((folder) => readdir(folder).catch(() => [])));
    const logged = new Set(names.flat());
    return (await this.#deps.store.overview.instances(accountId)).filter(({ id }) => logged.has(id));
  }

  async #sizeOf(id: string): Promise<number> {
    let sum = 0;
    for (const folder of this.#deps.folders)
      for (const name of await readdir(join(folder, id)).catch(() => []))
        sum += (await stat(join(folder, id, name)).catch(() => undefined))?.size ?? 0;
    return sum;
  }
}
