import { constants } from 'node:os';

const SIGNAL_BASE = 128;

/** The signal that an exit code stands for, by the convention of shells and containers: 128 + its number. */
export function signalOf(exitCode: number | null): string | null {
  if (exitCode === null || exitCode <= SIGNAL_BASE) return null;
  return (
    Object.entries(constants.signals).find(([, number]) => number === exitCode - SIGNAL_BASE)?.[0] ?? null
  );
}

export function exitCodeOf(code: number | null, signal: NodeJS.Signals | null): number {
  return code ?? (signal === null ? SIGNAL_BASE : SIGNAL_BASE + constants.signals[signal]);
}
