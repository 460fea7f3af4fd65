import { createWriteStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Caller } from '../../domain/caller.ts';
import type { BackupResult, BackupStore } from '../../store/backup-store.ts';
import { wallNow } from '../../support/clock.ts';
import type { Clock } from '../../support/clock.ts';
import { BerthError } from '../../support/errors.ts';
import type { Log } from '../../support/log.ts';
import type { Backups } from './backups.ts';
import { backupName, backupTime } from './backup-target.ts';
import type { BackupTarget } from './backup-target.ts';

const CHECK_EVERY_MS = 60_000;
const HOUR_MS = 3_600_000;
/** After one that failed. */
const RETRY_MS = 10 * 60_000;

export interface BackupScheduleDeps {
  backups: Backups;
  store: BackupStore;
  clock: Clock;
  log: Pick<Log, 'info' | 'error'>;
  data: string;
  /** As it is configured, without secrets; empty is none. */
  targetName: string;
  target: BackupTarget | undefined;
  everyHours: number;
  keep: number;
  volumes: boolean;
}

/** Makes a backup every so many hours and deletes the oldest ones. One server of an installation does it. */
export class BackupSchedule {
  readonly #deps: BackupScheduleDeps;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;

  constructor(deps: BackupScheduleDeps) {
    this.#deps = deps;
  }

  start(): void {
    const { target, everyHours } = this.#deps;
    if (target === undefined || everyHours === 0 || this.#timer !== undefined) return;
    const check = (): void => {
      this.#running ??= this.runIfDue().finally(() => (this.#running = undefined));
    };
    this.#timer = setInterval(check, CHECK_EVERY_MS);
    this.#timer.unref();
    check();
  }

  pause(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  async close(): Promise<void> {
    this.pause();
    await this.#running;
  }

  async status(caller: Caller): Promise<{ target: string; last: BackupResult | undefined }> {
    if (!caller.operator)
      throw new BerthError('forbidden', 'only a key with full access of the root account may see backups');
    return { target: this.#deps.targetName, last: await this.#deps.store.lastResult() };
  }

  /** Never rejects: a failure is logged and shown by the status. */
  async runIfDue(): Promise<void> {
    const { store, clock, log, target, everyHours, targetName } = this.#deps;
    if (target === undefined) return;
    const now = wallNow(clock);
    try {
      const last = await store.lastResult();
      if (last?.error && now - last.at < RETRY_MS && now >= last.at) return;
      const newest = backupTime((await target.list()).at(-1) ?? '');
      if (newest !== undefined && newest <= now && now - newest < everyHours * HOUR_MS) return;
      const name = backupName(now);
      await this.#make(target, name);
      await this.#removeOld(target);
      await store.saveResult({ at: wallNow(clock), error: null });
      log.info({ backup: name, target: targetName }, 'a backup was made');
    } catch (error) {
      log.error({ err: error, target: targetName }, 'the scheduled backup failed; it will be retried');
      await store.saveResult({ at: wallNow(clock), error: (error as Error).message }).catch(() => undefined);
    }
  }

  /** It is checked as a whole before it is kept. */
  async #make(target: BackupTarget, name: string): Promise<void> {
    const { backups, data, volumes } = this.#deps;
    const folder = await mkdtemp(join(data, 'backup-'));
    try {
      const file = join(folder, name);
      await pipeline(
        backups.stream({ keys: true, volumes }),
        createWriteStream(file, { mode: 0o600, flush: true }),
      );
      const { verifyBackup } = await import('./verify-backup.ts');
      await verifyBackup(file);
      await target.add(name, file);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  async #removeOld(target: BackupTarget): Promise<void> {
    const names = await target.list();
    for (const name of names.slice(0, Math.max(0, names.length - this.#deps.keep))) await target.remove(name);
  }
}
