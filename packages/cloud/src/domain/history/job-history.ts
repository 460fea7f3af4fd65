import type { Job } from '../job-records.ts';
import { hasEnded } from '../job-status.ts';
import { DURATION_BOUNDS_MS, durationBucket, MINUTE_MS } from './rollup.ts';

/** One addition to the history of an endpoint. */
export interface HistoryDelta {
  minute: number;
  name: string;
  count: number;
  total: number;
}

/** The minute that a moment belongs to. */
export function minuteOf(at: number): number {
  return Math.floor(at / MINUTE_MS) * MINUTE_MS;
}

/**
 * What a change of one job adds to the history of its endpoint; nothing for most changes. Written in the
 * transaction of the change, so that no crash can lose or repeat it.
 */
export function historyDeltas(before: Job | undefined, after: Job | undefined): HistoryDelta[] {
  if (after === undefined) return [];
  if (before === undefined) return [counted(after.createdAt, 'requests')];
  const deltas: HistoryDelta[] = [];
  if (after.retries > before.retries) deltas.push(counted(before.takenAt ?? after.queuedAt, 'retries'));
  if (!hasEnded(after) || hasEnded(before)) return deltas;
  const { status, takenAt, queuedAt } = after;
  const endedAt = after.endedAt ?? queuedAt;
  deltas.push(counted(endedAt, status));
  if (takenAt === null) return deltas;
  deltas.push(timed(endedAt, 'wait', takenAt - queuedAt), timed(endedAt, 'run', endedAt - takenAt));
  return deltas;
}

function counted(at: number, name: string): HistoryDelta {
  return { minute: minuteOf(at), name, count: 1, total: 0 };
}

/** Made once: a map finds a text that it has seen faster than a new one. */
const BUCKETS = Array.from({ length: DURATION_BOUNDS_MS.length + 1 }, (_, bucket) => bucket);
const TIMED_NAMES = {
  wait: BUCKETS.map((bucket) => `wait/${bucket}`),
  run: BUCKETS.map((bucket) => `run/${bucket}`),
};

function timed(at: number, name: 'wait' | 'run', milliseconds: number): HistoryDelta {
  const total = Math.max(0, milliseconds);
  return { minute: minuteOf(at), name: TIMED_NAMES[name][durationBucket(total)] as string, count: 1, total };
}
