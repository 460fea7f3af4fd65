import assert from 'node:assert/strict';
import type { Job, JobStatus } from '../../../cloud/src/domain/job-records.ts';
import type { JobTransition } from './recording-job-store.ts';

/** Which states may follow which. What has ended follows nothing, but for a retry of what failed. */
const ALLOWED_TRANSITIONS: Readonly<Record<JobStatus, readonly JobStatus[]>> = {
  IN_QUEUE: ['IN_QUEUE', 'IN_PROGRESS', 'CANCELLED', 'TIMED_OUT'],
  IN_PROGRESS: ['IN_PROGRESS', 'IN_QUEUE', 'COMPLETED', 'FAILED', 'CANCELLED', 'TIMED_OUT'],
  COMPLETED: [],
  FAILED: ['IN_QUEUE'],
  CANCELLED: [],
  TIMED_OUT: ['IN_QUEUE'],
};

/** Every single move keeps the rules. */
export function assertAllowedTransition({ before, after, removes, by }: JobTransition): void {
  const message = `${by} made of ${JSON.stringify(before)} ${JSON.stringify(after)}${removes ? ', and removed it' : ''}`;
  if (before === undefined) return assert.equal(after.status, 'IN_QUEUE', message);
  assert.equal(after.id, before.id, message);
  if (removes) {
    const isOver =
      before.status === after.status &&
      ALLOWED_TRANSITIONS[before.status].every((status) => status === 'IN_QUEUE');
    return assert.ok(isOver || after.status === 'TIMED_OUT', message);
  }
  assert.ok(ALLOWED_TRANSITIONS[before.status].includes(after.status), message);
  assert.equal(after.status === 'IN_PROGRESS', after.lease !== null, message);
  if (before.status === 'IN_PROGRESS' && after.status === 'IN_PROGRESS')
    assert.equal(after.lease, before.lease, message);
  if (before.status === 'IN_QUEUE' && after.status === 'IN_PROGRESS') assert.equal(by, 'take', message);
  if (by === 'take') assert.equal(after.attempt, before.attempt + 1, message);
}

/**
 * The moves of one job are one row: each starts from the version that another one left, and
 * each version is left once. Where two moves start from the same version, one of them
 * overwrote what the other had done. Answers the version that the row ends with; undefined
 * where the job was removed.
 */
export function finalVersion(moves: readonly JobTransition[]): Job | undefined {
  const open = new Map<string, { job: Job; count: number }>();
  const add = (job: Job, count: number): void => {
    const key = JSON.stringify(job, Object.keys(job).sort());
    const sum = (open.get(key)?.count ?? 0) + count;
    if (sum === 0) open.delete(key);
    else open.set(key, { job, count: sum });
  };
  for (const { before, after, removes } of moves) {
    if (before !== undefined) add(before, -1);
    if (!removes) add(after, 1);
  }
  const left = [...open.values()];
  const message = `the moves of ${moves[0]?.after.id} are not one row: ${JSON.stringify({ left, moves }, undefined, 1)}`;
  assert.ok(left.length <= 1 && left.every(({ count }) => count === 1), message);
  assert.equal(left.length, moves.some(({ removes }) => removes) ? 0 : 1, message);
  return left[0]?.job;
}
