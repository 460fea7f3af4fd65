/** What is remembered of an endpoint whose workers end when they should not. */
export interface Crashes {
  /** Ends in a row. */
  count: number;
  lastAt: number;
  /** What the last one said before it ended, or why it could not be started. */
  lastLine: string;
  /** The last one ran at all. */
  ran: boolean;
}

export const NO_CRASHES: Crashes = { count: 0, lastAt: 0, lastLine: '', ran: true };

const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;
/** From this many on, the endpoint counts as crash-looping. */
const LOOPING_FROM = 2;
/** A worker that was ready for this long tells that whatever went wrong before is over. */
const STEADY_MS = 60_000;
/** What nobody came back for is forgotten after this. */
const FORGET_AFTER_MS = 60 * 60_000;

export function afterCrash(
  { count }: Crashes,
  { lastLine, ran, now }: { lastLine: string; ran: boolean; now: number },
): Crashes {
  return { count: count + 1, lastAt: now, lastLine, ran };
}

/** Whether a worker that nobody told to end came to its end as it may. One that says that all is well, and did nothing, is started over and over like any other that crashes. */
export function endedWell({
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
  return exitCode === 0 && readyAt !== null && (worked || at - readyAt >= STEADY_MS);
}

/** When the next worker may start: at once after a first mishap, then later and later. */
export function nextStartAt({ count, lastAt }: Crashes): number {
  return count < LOOPING_FROM
    ? 0
    : lastAt + Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (count - LOOPING_FROM));
}

export function isLooping({ count }: Crashes): boolean {
  return count >= LOOPING_FROM;
}

/** What went wrong is over when a worker has been ready for a while since, or when it is long ago and the endpoint is abandoned: no job waits, and there is no worker. */
export function areOver(
  { lastAt }: Crashes,
  { readySince, isAbandoned, now }: { readySince: readonly number[]; isAbandoned: boolean; now: number },
): boolean {
  if (readySince.some((readyAt) => now - Math.max(readyAt, lastAt) > STEADY_MS)) return true;
  return isAbandoned && now - lastAt > FORGET_AFTER_MS;
}

/** In words for whoever waits. */
export function tellCrashes({ count, lastLine, ran }: Crashes): string {
  return ran
    ? `workers end as soon as they start (${count} in a row); the last one said: ${lastLine || '(nothing)'}`
    : `no worker can be started (${count} tries in a row): ${lastLine}`;
}
