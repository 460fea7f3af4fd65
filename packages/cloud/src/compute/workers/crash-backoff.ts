/** What is remembered of an endpoint whose workers end when they should not. */
export interface CrashHistory {
  /** Ends in a row. */
  count: number;
  lastAt: number;
  /** What the last one said before it ended, or why it could not be started. */
  lastLine: string;
  /** The last one ran at all. */
  ran: boolean;
}

export const NO_CRASHES: CrashHistory = { count: 0, lastAt: 0, lastLine: '', ran: true };

const MIN_BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 60_000;
/** From this many on, the endpoint counts as crash-looping. */
const CRASH_LOOP_THRESHOLD = 2;
/** A worker that was ready for this long tells that whatever went wrong before is over. */
const STABLE_AFTER_MS = 60_000;
/** What nobody came back for is forgotten after this. */
const FORGET_AFTER_MS = 60 * 60_000;

export function recordCrash(
  { count }: CrashHistory,
  { lastLine, ran, now }: { lastLine: string; ran: boolean; now: number },
): CrashHistory {
  return { count: count + 1, lastAt: now, lastLine, ran };
}

/** Whether a worker that nobody told to end came to its end as it may. One that says that all is well, and did nothing, is started over and over like any other that crashes. */
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

/** When the next worker may start: at once after a first mishap, then later and later. */
export function nextStartAt({ count, lastAt }: CrashHistory): number {
  return count < CRASH_LOOP_THRESHOLD
    ? 0
    : lastAt + Math.min(MAX_BACKOFF_MS, MIN_BACKOFF_MS * 2 ** (count - CRASH_LOOP_THRESHOLD));
}

export function isCrashLooping({ count }: CrashHistory): boolean {
  return count >= CRASH_LOOP_THRESHOLD;
}

/** What went wrong is over when a worker has been ready for a while since, or when it is long ago and the endpoint is abandoned: no job waits, and there is no worker. */
export function hasRecovered(
  { lastAt }: CrashHistory,
  { readySince, isAbandoned, now }: { readySince: readonly number[]; isAbandoned: boolean; now: number },
): boolean {
  if (readySince.some((readyAt) => now - Math.max(readyAt, lastAt) > STABLE_AFTER_MS)) return true;
  return isAbandoned && now - lastAt > FORGET_AFTER_MS;
}

/** In words for whoever waits. */
export function describeCrashes({ count, lastLine, ran }: CrashHistory): string {
  return ran
    ? `workers end as soon as they start (${count} in a row); the last one said: ${lastLine || '(nothing)'}`
    : `no worker can be started (${count} tries in a row): ${lastLine}`;
}
