import type { JobOutcome } from '../domain/job-records.ts';
import type { WakeupBus } from '../store/wakeup-bus.ts';
import { Waiters } from './waiters.ts';

/** No job has this number: between servers it stands for every job of the endpoint. */
const EVERY_JOB = -1;

/** Who waits for news of a job, and how news of it travels: to them here, and to the other servers. */
export class JobNotifier {
  readonly #wakeups: WakeupBus;
  /** Who waits for the end of a job. */
  readonly endWaiters = new Waiters<number, JobOutcome>();
  /** Who waits for anything to happen to a job. */
  readonly changeWaiters = new Waiters<number>();

  constructor(wakeups: WakeupBus) {
    this.#wakeups = wakeups;
  }

  /** Something happened to a job. */
  notify(endpointId: string, seq: number): void {
    this.changeWaiters.wake(endpointId, seq);
    this.#wakeups.publish({ kind: 'job', endpointId, seq });
  }

  /** Many jobs of an endpoint went at once. */
  notifyAll(endpointId: string): void {
    this.onRemoteChange(endpointId, EVERY_JOB);
    this.#wakeups.publish({ kind: 'job', endpointId, seq: EVERY_JOB });
  }

  /** What another server told. */
  onRemoteChange(endpointId: string, seq: number): void {
    for (const waiters of [this.endWaiters, this.changeWaiters]) {
      if (seq === EVERY_JOB) waiters.wakeEndpoint(endpointId);
      else waiters.wake(endpointId, seq);
    }
  }

  wakeAll(): void {
    this.endWaiters.wakeAll();
    this.changeWaiters.wakeAll();
  }
}
