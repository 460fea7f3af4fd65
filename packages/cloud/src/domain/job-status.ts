import type { Job } from './job-records.ts';

export function hasEnded({ status }: Pick<Job, 'status'>): boolean {
  return status !== 'IN_QUEUE' && status !== 'IN_PROGRESS';
}

/** Time between entering the queue and being taken. */
export function delayTime({ takenAt, queuedAt }: Job): number | undefined {
  return takenAt === null ? undefined : Math.max(0, takenAt - queuedAt);
}

/** Time between being taken and the end. */
export function executionTime({ takenAt, endedAt }: Job): number | undefined {
  if (endedAt === null) return undefined;
  return takenAt === null ? 0 : Math.max(0, endedAt - takenAt);
}
