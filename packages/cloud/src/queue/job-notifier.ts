import type { JobOutcome } from '../domain/job-records.ts';
import type { WakeupBus } from '../store/wakeup-bus.ts';
import { Waiters } from './waiters.ts';

/** No job has this number: between servers it stands for all jobs of the endpoint. */
const EVERY_JOB = -1;

/** What a waiter for an end is woken with: the end, or only that this very job changed. */
export type EndNotice = JobOutcome | 'changed';

/** The waiters for job changes, and how changes are announced: to waiters here and to the other servers. */
export class JobNotifier {
  readonly #wakeups: WakeupBus;
  /** Waiters for the end of a job. */
  readonly endWaiters = new Waiters<number, EndNotice>();
  /** Waiters for any change of a job. */
  readonly changeWaiters = new Waiters<number>();

  constructor(wakeups: WakeupBus) {
    this.#wakeups = wakeups;
  }

  /** A job changed. */
  notify(endpointId: string, seq: number): void {
    this.changeWaiters.wake(endpointId, seq);
    this.#wakeups.publish({ kind: 'job', endpointId, seq });
  }

  /** Many jobs of an endpoint were removed together. */
  notifyAll(endpointId: string): void {
    this.onRemoteChange(endpointId, EVERY_JOB);
    this.#wakeups.publish({ kind: 'job', endpointId, seq: EVERY_JOB });
  }

  /** A notification from another server. */
  onRemoteChange(endpointId: string, seq: number): void {
    if (seq === EVERY_JOB) {
      for (const waiters of [this.endWaiters, this.changeWaiters]) waiters.wakeEndpoint(endpointId);
      return;
    }
    this.endWaiters.wake(endpointId, seq, 'changed');
    this.changeWaiters.wake(endpointId, seq);
  }

  wakeAll(): void {
    this.endWaiters.wakeAll();
    this.changeWaiters.wakeAll();
  }
}
