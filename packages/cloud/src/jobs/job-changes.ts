import type { Delivery, Job, JobChange, WholeJob } from '../store/job-records.ts';
import type { AskedChange, Changed, JobStore } from '../store/jobs.ts';
import type { Clock } from '../support/clock.ts';
import { hasEnded } from './job.ts';
import { PATIENCE, persist } from './persist.ts';

/** What becomes of a job, as of now; undefined where nothing does. `tried`: the job as an earlier try found it that failed, or seemed to. */
type Rule = (job: Job, now: number, tried: Job | undefined) => JobChange | undefined;

interface JobChangesParts {
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
    return this.#persist(new PendingChange(this.#parts, endpointId, seq, rule), patience);
  }

  /** Rules for several jobs of an endpoint, which are kept together. */
  async all(endpointId: string, asked: readonly { seq: number; rule: Rule }[]): Promise<void> {
    const pending = asked.map(({ seq, rule }) => new PendingChange(this.#parts, endpointId, seq, rule));
    let done: (Changed | undefined)[];
    try {
      done = await this.#parts.store.changeAll(pending);
    } catch {
      // Each by itself: one that cannot be kept does not hold up the others, and what was kept all the same is found to be.
      await Promise.all(pending.map((one) => this.#persist(one, PATIENCE.worker)));
      return;
    }
    done.forEach((one, index) => {
      if (one?.changed === true) this.#parts.onChanged(one, pending[index]?.change);
    });
  }

  async #persist(pending: PendingChange, patience: number): Promise<Changed | undefined> {
    const { store, onChanged } = this.#parts;
    const done = await persist(() => {
      pending.again();
      return store.change(pending.endpointId, pending.seq, (job) => pending.next(job));
    }, patience);
    if (done?.changed === true) onChanged(done, pending.change);
    else if (
      pending.unsure !== undefined &&
      (done === undefined || done.after.status === pending.unsure.after.status)
    )
      onChanged(pending.unsure, undefined);
    return done;
  }
}

/** A change on its way to the store: what a try made of the job. Where the store failed then, it may have kept that all the same, and the next try finds nothing to do. */
class PendingChange implements AskedChange {
  readonly #parts: Pick<JobChangesParts, 'clock' | 'deliveryOf'>;
  readonly endpointId: string;
  readonly seq: number;
  readonly #rule: Rule;
  /** The job that the change is made of. */
  #before: Job | undefined;
  change: JobChange | undefined;
  unsure: Changed | undefined;

  constructor(
    parts: Pick<JobChangesParts, 'clock' | 'deliveryOf'>,
    endpointId: string,
    seq: number,
    rule: Rule,
  ) {
    this.#parts = parts;
    this.endpointId = endpointId;
    this.seq = seq;
    this.#rule = rule;
  }

  again(): void {
    if (this.#before !== undefined && this.change !== undefined)
      this.unsure = { before: this.#before, after: this.change.job, changed: true };
    this.#before = undefined;
  }

  next(job: Job): JobChange | undefined {
    const change = this.#rule(job, this.#parts.clock.now(), this.unsure?.before);
    this.change = change === undefined ? undefined : this.#withDelivery(job, change);
    this.#before = job;
    return this.change;
  }

  /** A job that ends with a webhook gets its delivery in the same transaction. */
  #withDelivery(before: Job, change: JobChange): JobChange {
    if (change.job.webhook === null || hasEnded(before) || !hasEnded(change.job)) return change;
    return { ...change, delivery: (payloads) => this.#parts.deliveryOf(change.job, payloads) };
  }
}
