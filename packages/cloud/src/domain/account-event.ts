import type { JobStatus } from './job-records.ts';
import type { PodStatus } from './pods/pod-record.ts';
import type { WorkerState } from './endpoints/worker-record.ts';

/** What an event is about; `GET /v2/events?types=` filters by it. */
export const EVENT_SUBJECTS = ['endpoint', 'release', 'worker', 'pod', 'job', 'volume', 'quota'] as const;
export type EventSubject = (typeof EVENT_SUBJECTS)[number];

/** One job that changed, in an event about several. */
export interface JobSample {
  id: string;
  status: JobStatus;
  workerId: string | null;
}

/** An event of `GET /v2/events`. `docs/events.md` describes each. */
export type AccountEvent =
  | { type: 'endpoint.changed'; endpointId: string; name: string; version: number }
  | { type: 'endpoint.deleted'; endpointId: string }
  | { type: 'release.created'; endpointId: string; version: number }
  | {
      type: 'worker.changed';
      endpointId: string;
      workerId: string;
      state: WorkerState;
      reason: string | null;
    }
  | {
      type: 'pod.changed';
      podId: string;
      name: string;
      status: PodStatus;
      statusDetail: string | null;
    }
  | {
      type: 'job.changed';
      endpointId: string;
      /**
       * How many changes since the last event about this endpoint; those of other servers are not counted.
       */
      changes: number;
      /** The jobs that changed last, at most ten. */
      jobs: JobSample[];
    }
  | { type: 'volume.changed'; volumeId: string; name: string; size: number }
  | { type: 'volume.deleted'; volumeId: string }
  /** A limit was set, or removed if `maximum` is null: then that of the configuration applies, if any. */
  | { type: 'quota.changed'; limit: string; maximum: number | null }
  | { type: 'quota.warning'; limit: string; usedRatio: number };

export function subjectOf({ type }: AccountEvent): EventSubject {
  return type.slice(0, type.indexOf('.')) as EventSubject;
}
