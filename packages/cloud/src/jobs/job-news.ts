import type { JobOutcome } from '../store/job-records.ts';
import type { Wakeups } from '../store/wakeups.ts';
import { Waiters } from './waiters.ts';

/** No job has this number: between servers it stands for every job of the endpoint. */
const EVERY_JOB = -1;

/** Who waits for news of a job, and how news of it travels: to them here, and to the other servers. */
export class JobNews {
  readonly #wakeups: Wakeups;
  /** Who waits for the end of a job. */
  readonly ends = new Waiters<number, JobOutcome>();
  /** Who waits for anything to happen to a job. */
  readonly changes = new Waiters<number>();

  constructor(wakeups: Wakeups) {
    this.#wakeups = wakeups;
  }

  /** Something happened to a job. */
  tell(endpointId: string, seq: number): void {
    this.changes.wake(endpointId, seq);
    this.#wakeups.publish({ kind: 'job', endpointId, seq });
  }

  /** Many jobs of an endpoint went at once. */
  tellAll(endpointId: string): void {
    this.hear(endpointId, EVERY_JOB);
    this.#wakeups.publish({ kind: 'job', endpointId, seq: EVERY_JOB });
  }

  /** What another server told. */
  hear(endpointId: string, seq: number): void {
    for (const waiters of [this.ends, this.changes]) {
      if (seq === EVERY_JOB) waiters.wakeEndpoint(endpointId);
      else waiters.wake(endpointId, seq);
    }
  }

  wakeAll(): void {
    this.ends.wakeAll();
    this.changes.wakeAll();
  }
}
