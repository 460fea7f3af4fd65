import type { JobChange } from '../domain/job-records.ts';
import type { CloudEventBus } from '../domain/events.ts';
import { hasEnded } from '../domain/job-status.ts';
import type { JobChangeResult } from '../store/job-store.ts';
import type { WakeupBus } from '../store/wakeup-bus.ts';
import type { CancellationRegistry } from './cancellation-registry.ts';
import type { Dispatcher } from './dispatcher.ts';
import type { JobNotifier } from './job-notifier.ts';
import { outcomeOf } from './job-waits.ts';
import type { WorkerHeartbeats } from './worker-heartbeats.ts';

interface JobChangeEffectsDeps {
  heartbeats: WorkerHeartbeats;
  cancellations: CancellationRegistry;
  dispatcher: Dispatcher;
  notifier: JobNotifier;
  wakeups: WakeupBus;
  events: CloudEventBus;
}

/** What follows when a job has changed in the store: events, wake-ups and cancellations. */
export class JobChangeEffects {
  readonly #deps: JobChangeEffectsDeps;

  constructor(deps: JobChangeEffectsDeps) {
    this.#deps = deps;
  }

  apply({ before, after }: JobChangeResult, change: JobChange | undefined): void {
    const { endpointId, seq } = after;
    if (before.status === 'IN_PROGRESS' && after.status !== 'IN_PROGRESS') {
      this.#deps.heartbeats.unassignJob(endpointId, before.workerId, seq);
      if (after.status === 'CANCELLED' || after.status === 'TIMED_OUT')
        this.cancelOnWorker(endpointId, before.workerId, before.id, seq);
    }
    if (before.status !== 'IN_QUEUE' && after.status === 'IN_QUEUE') {
      this.#deps.events.publish('jobs.queued', { endpointId });
      this.#deps.dispatcher.wake(endpointId);
      this.#deps.wakeups.publish({ kind: 'queue', endpointId });
    }
    if (after.webhook !== null && hasEnded(after) && !hasEnded(before))
      this.#deps.events.publish('webhook.due', { endpointId });
    if (before.status === after.status) return;
    const leaseLost = change?.leaseLost;
    this.#deps.events.publish('job.changed', {
      job: after,
      from: before.status,
      ...(leaseLost && { leaseLost }),
    });
    if (hasEnded(after))
      this.#deps.notifier.endWaiters.wake(endpointId, seq, (change && outcomeOf(change)) ?? 'changed');
    this.#deps.notifier.notify(endpointId, seq);
  }

  /** Has the worker that runs this job cancel it, wherever it is connected. */
  cancelOnWorker(endpointId: string, workerId: string | null, jobId: string, seq: number): void {
    if (workerId === null) return;
    this.#deps.heartbeats.unassignJob(endpointId, workerId, seq);
    this.#deps.cancellations.add(endpointId, workerId, jobId);
    this.#deps.wakeups.publish({ kind: 'stop', endpointId, workerId, jobId });
  }
}
