import { isoTimeOrNull } from '../../support/clock.ts';
import type { Job } from '../job-records.ts';
import type { Worker } from './worker-record.ts';

/** When each phase of a worker's start was over, in milliseconds since 1970; null while it is not. */
export interface StartPhases {
  /** Berth decided to start it. */
  scheduledAt: number;
  /** Its image was on the machine, with its Python environment. */
  imageReadyAt: number | null;
  /** Its process or container ran. */
  startedAt: number | null;
  /** Its first heartbeat: the handler is loaded. */
  connectedAt: number | null;
  /** It got its first job or request. */
  firstJobAt: number | null;
}

export function startPhases({
  createdAt,
  imageReadyAt,
  startedAt,
  readyAt,
  firstJobAt,
}: Pick<Worker, 'createdAt' | 'imageReadyAt' | 'startedAt' | 'readyAt' | 'firstJobAt'>): StartPhases {
  return { scheduledAt: createdAt, imageReadyAt, startedAt, connectedAt: readyAt, firstJobAt };
}

/** Whether a job was in the queue while the worker that took it started: its delay includes that start. */
export function waitedForStart({ queuedAt }: Pick<Job, 'queuedAt'>, { connectedAt }: StartPhases): boolean {
  return connectedAt !== null && queuedAt <= connectedAt;
}

/** The phases as every interface shows them. */
export function startPhasesJson(phases: StartPhases): { [Phase in keyof StartPhases]: string | null } {
  return {
    scheduledAt: isoTimeOrNull(phases.scheduledAt),
    imageReadyAt: isoTimeOrNull(phases.imageReadyAt),
    startedAt: isoTimeOrNull(phases.startedAt),
    connectedAt: isoTimeOrNull(phases.connectedAt),
    firstJobAt: isoTimeOrNull(phases.firstJobAt),
  };
}
