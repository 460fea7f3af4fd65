import type { Store } from '../store/store.ts';
import type { Log } from '../support/log.ts';
import { CLOCK_STEP_MS } from '../support/steady-clock.ts';
import type { SteadyClock } from '../support/steady-clock.ts';

/** Keeps the server's time near a reference clock, without letting it jump. */
export interface ClockSync {
  /** Continues the time that was kept before a restart. Before anything is found to be due. */
  restore(): Promise<void>;
  /** Compares with the reference. */
  tick(): Promise<void>;
  /** Whether other servers follow this one. */
  isLeading: boolean;
}

export interface ClockSyncDeps {
  clock: SteadyClock;
  store: Pick<Store, 'clock'> & Partial<Pick<Store, 'leading'>>;
  log: Pick<Log, 'warn' | 'info'>;
}

/** Whether the difference is one that only a clock that was set explains. */
export function isClockOff(milliseconds: number): boolean {
  return Math.abs(milliseconds) > CLOCK_STEP_MS;
}

/** `set ahead by 3600 s`. */
export function describeStep(milliseconds: number): string {
  return `set ${milliseconds > 0 ? 'ahead' : 'back'} by ${Math.round(Math.abs(milliseconds) / 1000)} s`;
}
