import type { Delivery, Job, JobChange, WholeJob } from '../store/job-records.ts';
import type { AskedChange, Changed, JobStore } from '../store/jobs.ts';
import type { Clock } from '../support/clock.ts';
import { hasEnded } from './job.ts';
import { PATIENCE, persist } from './persist.ts';

/** What becomes of a job, as of now; undefined where nothing does. `tried`: the job as an earlier try found it that failed, or seemed to. */
export type Rule = (job: Job, now: number, tried: Job | undefined) => JobChange | undefined;

export interface JobChangesParts {
  store: Pick<JobStore, 'change' | 'changeAll'>;
  clock: Clock;
  deliveryOf(job: Job, payloads: WholeJob['payloads']): Delivery;
  /** A job is no longer what it was. Told once for each change, also where the store first seemed to fail. */
  onChanged(changed: Changed, change: JobChange | undefined): void;
}

/** Brings rules to jobs, and tries again where the store is away. */
export class JobChanges {
  readonly #parts: JobChangesParts;

  constructor(parts: JobChangesParts) {
    this.#parts = parts;
  }

  one(endpointId: string, seq: number, rule: Rule, patience = PATIENCE.worker): Promise<Changed | undefined> {
    return this.#persist(endpointId, this.#attempt(seq, rule), patience);
  }

  /** Rules for several jobs of an endpoint, which are kept together. */
  async all(endpointId: string, asked: readonly { seq: number; rule: Rule }[]): Promise<void> {
    const attempts = asked.map(({ seq, rule }) => this.#attempt(seq, rule));
    let done: (Changed | undefined)[];
    try {
      done = await this.#parts.store.changeAll(endpointId, attempts);
    } catch {
      // Each by itself: one that cannot be kept does not hold up the others, and what was kept all the same is found to be.
      await Promise.all(attempts.map((attempt) => this.#persist(endpointId, attempt, PATIENCE.worker)));
      return;
    }
    for (const [index, one] of done.entries()) if (one?.changed === true) this.#parts.onChanged(one, attempts[index]?.change);
  }

  async #persist(endpointId: string, attempt: Attempt, patience: number): Promise<Changed | undefined> {
    const { store, clock, onChanged } = this.#parts;
    const done = await persist(() => {
      attempt.again();
      return store.change(endpointId, attempt.seq, attempt.next);
    }, clock, patience);
    if (done?.changed === true) onChanged(done, attempt.change);
    else if (attempt.unsure !== undefined && (done === undefined || done.after.status === attempt.unsure.after.status)) onChanged(attempt.unsure, undefined);
    return done;
  }

  #attempt(seq: number, rule: Rule): Attempt {
    return new Attempt(seq, (job, tried) => this.#withDelivery(job, rule(job, this.#parts.clock.now(), tried)));
  }

  /** A job that ends with a webhook gets its delivery in the same transaction. */
  #withDelivery(before: Job, change: JobChange | undefined): JobChange | undefined {
    if (change === undefined || change.job.webhook === null || hasEnded(before) || !hasEnded(change.job)) return change;
    return { ...change, delivery: (payloads) => this.#parts.deliveryOf(change.job, payloads) };
  }
}

/** What a try made of the job. Where the store failed then, it may have kept that all the same, and the next try finds nothing to do. */
class Attempt implements AskedChange {
  readonly seq: number;
  readonly #rule: (job: Job, tried: Job | undefined) => JobChange | undefined;
  #made: Changed | undefined;
  change: JobChange | undefined;
  unsure: Changed | undefined;

  constructor(seq: number, rule: (job: Job, tried: Job | undefined) => JobChange | undefined) {
    this.seq = seq;
    this.#rule = rule;
  }

  again(): void {
    this.unsure = this.#made ?? this.unsure;
    this.#made = undefined;
  }

  readonly next = (job: Job): JobChange | undefined => {
    this.change = this.#rule(job, this.unsure?.before);
    this.#made = this.change === undefined ? undefined : { before: job, after: this.change.job, changed: true };
    return this.change;
  };
}
