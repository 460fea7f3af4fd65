import type { Delivery, Job, JobChange, JobWithPayloads } from '../domain/job-records.ts';
import type { JobChangeRequest, JobChangeResult, JobStore } from '../store/job-store.ts';
import type { Clock } from '../support/clock.ts';
import { hasEnded } from '../domain/job-status.ts';
import { STORE_RETRY_MS, withStoreRetries } from './store-retry.ts';

/**
 * Computes the change of a job; undefined where nothing changes. `tried`: the job as an earlier attempt of
 * this update found it, where that attempt failed or seemed to.
 */
type Transition = (job: Job, now: number, tried: Job | undefined) => JobChange | undefined;

interface JobUpdaterDeps {
  store: Pick<JobStore, 'change' | 'changeAll'>;
  clock: Clock;
  deliveryOf(job: Job, payloads: JobWithPayloads['payloads']): Delivery;
  /** A job changed. Called once for each change, also where the store first seemed to fail. */
  onChanged(changed: JobChangeResult, change: JobChange | undefined): void;
}

/** Applies transitions to jobs, and retries where the store is unavailable. */
export class JobUpdater {
  readonly #deps: JobUpdaterDeps;

  constructor(deps: JobUpdaterDeps) {
    this.#deps = deps;
  }

  update(
    endpointId: string,
    seq: number,
    rule: Transition,
    patience = STORE_RETRY_MS.worker,
  ): Promise<JobChangeResult | undefined> {
    return this.#persist(new PendingChange(this.#deps, endpointId, seq, rule), patience);
  }

  /** Applies transitions to several jobs of an endpoint in one commit. */
  async updateAll(endpointId: string, requests: readonly { seq: number; rule: Transition }[]): Promise<void> {
    const pending = requests.map(({ seq, rule }) => new PendingChange(this.#deps, endpointId, seq, rule));
    let done: (JobChangeResult | undefined)[];
    try {
      done = await this.#deps.store.changeAll(pending);
    } catch {
      // Each by itself: one that cannot be stored does not block the others, and one that was committed
      // anyway is recognized.
      await Promise.all(pending.map((one) => this.#persist(one, STORE_RETRY_MS.worker)));
      return;
    }
    done.forEach((one, index) => {
      if (one?.changed === true) this.#deps.onChanged(one, pending[index]?.change);
    });
  }

  async #persist(pending: PendingChange, patience: number): Promise<JobChangeResult | undefined> {
    const { store, onChanged } = this.#deps;
    const done = await withStoreRetries(() => {
      pending.startTry();
      return store.change(pending.endpointId, pending.seq, (job) => pending.next(job));
    }, patience);
    if (done?.changed === true) onChanged(done, pending.change);
    else if (
      pending.uncertain !== undefined &&
      (done === undefined || done.after.status === pending.uncertain.after.status)
    )
      onChanged(pending.uncertain, undefined);
    return done;
  }
}

/**
 * An update in progress: the change that an attempt made. Where the store failed then, it may have committed
 * the change anyway, and the next attempt finds nothing to do.
 */
class PendingChange implements JobChangeRequest {
  readonly #deps: Pick<JobUpdaterDeps, 'clock' | 'deliveryOf'>;
  readonly endpointId: string;
  readonly seq: number;
  readonly #rule: Transition;
  /** The job before the change. */
  #before: Job | undefined;
  change: JobChange | undefined;
  uncertain: JobChangeResult | undefined;

  constructor(
    deps: Pick<JobUpdaterDeps, 'clock' | 'deliveryOf'>,
    endpointId: string,
    seq: number,
    rule: Transition,
  ) {
    this.#deps = deps;
    this.endpointId = endpointId;
    this.seq = seq;
    this.#rule = rule;
  }

  startTry(): void {
    if (this.#before !== undefined && this.change !== undefined)
      this.uncertain = { before: this.#before, after: this.change.job, changed: true };
    this.#before = undefined;
  }

  next(job: Job): JobChange | undefined {
    const change = this.#rule(job, this.#deps.clock.now(), this.uncertain?.before);
    this.change = change === undefined ? undefined : this.#withDelivery(job, change);
    this.#before = job;
    return this.change;
  }

  /** A job that ends with a webhook gets its delivery in the same transaction. */
  #withDelivery(before: Job, change: JobChange): JobChange {
    if (change.job.webhook === null || hasEnded(before) || !hasEnded(change.job)) return change;
    return { ...change, delivery: (payloads) => this.#deps.deliveryOf(change.job, payloads) };
  }
}
