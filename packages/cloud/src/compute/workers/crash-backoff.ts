/** The crashes of an endpoint's workers. */
export interface CrashHistory {
  /** Crashes in a row. */
  count: number;
  lastAt: number;
  /** The crash summary of the last one, or why it could not be started. */
  lastLine: string;
  /** Whether the last one ran at all. */
  ran: boolean;
}

export const NO_CRASHES: CrashHistory = { count: 0, lastAt: 0, lastLine: '', ran: true };

const MIN_BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 60_000;
/** From this many crashes in a row on, the endpoint is in a crash loop. */
const CRASH_LOOP_THRESHOLD = 2;
/** A worker that has been ready for this long ends a series of crashes. */
const STABLE_AFTER_MS = 60_000;
/** The crashes of an unused endpoint are forgotten after this. */
const FORGET_AFTER_MS = 60 * 60_000;

export function recordCrash(
  { count }: CrashHistory,
  { lastLine, ran, now }: { lastLine: string; ran: boolean; now: number },
): CrashHistory {
  return { count: count + 1, lastAt: now, lastLine, ran };
}

/**
 * Whether a worker that ended by itself did so without a fault. One that exits with code 0 before it did
 * anything counts as crashed, or it would be started again and again.
 */
export function exitedCleanly({
  exitCode,
  readyAt,
  worked,
  at,
}: {
  exitCode: number | null;
  readyAt: number | null;
  worked: boolean;
  at: number;
}): boolean {
  return exitCode === 0 && readyAt !== null && (worked || at - readyAt >= STABLE_AFTER_MS);
}

/** When the next worker may start: at once after a first crash, then with exponential back-off. */
export function nextStartAt({ count, lastAt }: CrashHistory): number {
  return count < CRASH_LOOP_THRESHOLD
    ? 0
    : lastAt + Math.min(MAX_BACKOFF_MS, MIN_BACKOFF_MS * 2 ** (count - CRASH_LOOP_THRESHOLD));
}

export function isCrashLooping({ count }: CrashHistory): boolean {
  return count >= CRASH_LOOP_THRESHOLD;
}

/**
 * A series of crashes is over when a worker has been ready for a while since, or when it is long ago and the
 * endpoint is unused: no job waits, and there is no worker.
 */
export function hasRecovered(
  { lastAt }: CrashHistory,
  { readySince, isAbandoned, now }: { readySince: readonly number[]; isAbandoned: boolean; now: number },
): boolean {
  if (readySince.some((readyAt) => now - Math.max(readyAt, lastAt) > STABLE_AFTER_MS)) return true;
  return isAbandoned && now - lastAt > FORGET_AFTER_MS;
}

/** The reason shown for jobs that wait. */
export function describeCrashes({ count, lastLine, ran }: CrashHistory): string {
  return ran
    ? `workers end as soon as they start (${count} in a row); the last one said: ${lastLine || '(nothing)'}`
    : `no worker can be started (${count} tries in a row): ${lastLine}`;
}
