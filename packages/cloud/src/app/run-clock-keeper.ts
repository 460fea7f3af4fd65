import { join } from 'node:path';
import type { Log } from '../support/log.ts';
import type { ClockKeeper, ClockKeeperDeps } from './clock-keeper.ts';
import { MachineClockKeeper } from './machine-clock-keeper.ts';
import { SharedClockKeeper } from './shared-clock-keeper.ts';

const TICK_MS = 1_000;

/** With PostgreSQL the servers go by the clock of the database, with SQLite by that of the machine. */
export function createClockKeeper(deps: ClockKeeperDeps, database: string, data: string): ClockKeeper {
  const file = join(data, 'clock.json');
  return database === '' ? new MachineClockKeeper({ ...deps, file }) : new SharedClockKeeper(deps, { file });
}

/** Runs a keeper once a second. Resolves its `close` when the last comparison has ended. */
export function runClockKeeper(keeper: ClockKeeper, log: Pick<Log, 'warn'>): { close(): Promise<void> } {
  let running: Promise<void> | undefined;
  const timer = setInterval(() => {
    running ??= keeper
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
