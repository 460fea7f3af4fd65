import type { EventBus } from '../support/event-bus.ts';

/** Where a change was made: by a request to this server, by this server's reconciler, or by another server on the same database. */
export type ChangeSource = 'request' | 'reconciler' | 'other-server';

/**
 * Everything that one part of this server tells the others. An event carries no data, only
 * what has changed: a listener reads the store where it needs to know more.
 */
export interface CloudEvents {
  /** Jobs wait in the queue of this endpoint. */
  'jobs.queued': { endpointId: string };
  /** A webhook is due now. */
  'webhook.due': { endpointId: string };
  /** A worker asked to be replaced. */
  'worker.refresh-requested': { endpointId: string; workerId: string };
  /** An endpoint was created or changed. Without an id, any endpoint may have changed. */
  'endpoint.changed': { endpointId?: string; source: ChangeSource };
  /** An endpoint was deleted from the store. Its jobs and workers may still be there. */
  'endpoint.removed': { endpointId: string };
  /** A pod's desired or observed state changed. */
  'pod.changed': { podId: string; source: ChangeSource };
  /** An API key or an S3 key was changed or revoked. */
  'keys.changed': { source: ChangeSource };
  /** Notifications of other servers may be lost: whatever depends on them reads the store again. */
  'wakeups.missed': Record<string, never>;
}

export type CloudEventBus = EventBus<CloudEvents>;
