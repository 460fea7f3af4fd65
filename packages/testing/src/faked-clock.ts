import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const LIBRARIES = ['x86_64-linux-gnu', 'aarch64-linux-gnu'].map(
  (machine) => `/usr/lib/${machine}/faketime/libfaketimeMT.so.1`,
);

/**
 * The wall clock of a process, which the test sets while the process runs. Its monotonic clock is the real
 * one.
 */
export interface FakedClock {
  /** What the process has to be started with. */
  env: Record<string, string>;
  /** From now on its wall clock differs by this many seconds from the real one. */
  set(seconds: number): void;
  remove(): void;
}

/** Undefined where libfaketime (Debian: `faketime`) is not installed. */
export function createFakedClock(): FakedClock | undefined {
  const library = LIBRARIES.find((path) => existsSync(path));
  if (library === undefined) return undefined;
  const folder = mkdtempSync(join(tmpdir(), 'berth-clock-'));
  const file = join(folder, 'clock');
  const set = (seconds: number): void =>
    writeFileSync(file, `${seconds < 0 ? '-' : '+'}${Math.abs(seconds)}s\n`);
  set(0);
  return {
    env: {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      DONT_FAKE_MONOTONIC: '1',
      NO_FAKE_STAT: '1',
    },
    set,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
