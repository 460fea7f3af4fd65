import { join } from 'node:path';
import type { Log } from '../support/log.ts';
import type { ClockSync, ClockSyncDeps } from './clock-sync.ts';
import { MachineClockSync } from './machine-clock-sync.ts';
import { SharedClockSync } from './shared-clock-sync.ts';

const TICK_MS = 1_000;

/** With PostgreSQL the servers go by the clock of the database, with SQLite by that of the machine. */
export function createClockSync(deps: ClockSyncDeps, database: string, data: string): ClockSync {
  const file = join(data, 'clock.json');
  return database === '' ? new MachineClockSync({ ...deps, file }) : new SharedClockSync(deps, { file });
}

/** Runs a clock sync once a second. Resolves its `close` when the last comparison has ended. */
export function runClockSync(clockSync: ClockSync, log: Pick<Log, 'warn'>): { close(): Promise<void> } {
  let running: Promise<void> | undefined;
  const timer = setInterval(() => {
    running ??= clockSync
      .tick()
      .catch((error: unknown) => log.warn({ err: error }, 'the clock could not be checked; trying again'))
      .finally(() => (running = undefined));
  }, TICK_MS);
  timer.unref();
  return {
    close: async () => {
      clearInterval(timer);
      await running;
    },
  };
}
