import { isPastRetention } from '../domain/job-records.ts';
import type { Job, JobChange, JobOutcome, JobWithPayloads } from '../domain/job-records.ts';
import type { JobSequence } from '../domain/job-ids.ts';
import { hasEnded } from '../domain/job-status.ts';
import * as transitions from '../domain/job-transitions.ts';
import type { JobStore } from '../store/job-store.ts';
import type { CancelSignal } from '../support/cancel-signal.ts';
import type { Clock } from '../support/clock.ts';
import type { EndNotice, JobNotifier } from './job-notifier.ts';
import type { JobSubmitter, SubmitRequest } from './job-submitter.ts';

interface JobWaitsDeps {
  store: JobStore;
  clock: Clock;
  numbers: JobSequence;
  notifier: JobNotifier;
  submitter: JobSubmitter;
}

/** The waits of clients for the end or the next change of a job. */
export class JobWaits {
  readonly #deps: JobWaitsDeps;
  #closed = false;

  constructor(deps: JobWaitsDeps) {
    this.#deps = deps;
  }

  /** The server stops: who waits gets the job as it is. The notifier wakes them. */
  close(): void {
    this.#closed = true;
  }

  /** A job whose retention is over is not found, though its row may still exist. */
  async find(endpointId: string, seq: number): Promise<JobWithPayloads | undefined> {
    const found = await this.#deps.store.find(endpointId, seq);
    return found !== undefined && isPastRetention(found.job, this.#deps.clock.now()) ? undefined : found;
  }

  /**
   * Submits for a caller who waits for the end. The wait starts before the job can be seen by anyone, so the
   * end cannot be missed.
   */
  async submitAndWait(
    request: SubmitRequest,
    milliseconds: number,
    signal: CancelSignal,
  ): Promise<{ job: Job; outcome: JobOutcome | undefined }> {
    const { submitter } = this.#deps;
    const endpointId = request.endpoint.id;
    for (;;) {
      const seq = this.#deps.numbers.next();
      const ended = this.#deps.notifier.endWaiters.wait(endpointId, seq, milliseconds, signal);
      let job: Job | undefined;
      try {
        job = submitter.resolveStored(request, await submitter.offer(seq, request));
      } finally {
        // Ends the wait where no job was created, or where the job has another number.
        if (job?.seq !== seq) this.#deps.notifier.endWaiters.wake(endpointId, seq);
      }
      if (job !== undefined)
        return {
          job,
          outcome: await this.waitForEnd(endpointId, job.seq, milliseconds, signal, {
            job,
            ...(job.seq === seq && { ended }),
          }),
        };
    }
  }

  /**
   * Resolves with the current job when it has ended or is gone, the time is over, or the request is aborted.
   * `submitted`: the job, where it was just submitted, and the wait for its end, where that was started
   * before.
   */
  async waitForEnd(
    endpointId: string,
    seq: number,
    milliseconds: number,
    signal: CancelSignal,
    submitted?: { job: Job; ended?: Promise<EndNotice | undefined> },
  ): Promise<JobOutcome | undefined> {
    // A monotonic clock: the wall clock may be set during the wait.
    const until = performance.now() + milliseconds;
    let ended = submitted?.ended;
    let mayHaveEnded = ended === undefined || this.#closed;
    let woken = false;
    let isTold = false;
    let last = submitted?.job;
    for (;;) {
      ended ??= this.#deps.notifier.endWaiters.wait(
        endpointId,
        seq,
        Math.max(0, until - performance.now()),
        signal,
      );
      if (mayHaveEnded) {
        // A waiting caller gets the end, however short the retention is.
        const found = woken ? await this.#deps.store.find(endpointId, seq) : await this.find(endpointId, seq);
        if (found === undefined && last !== undefined) return isTold ? this.#outlived(last) : undefined;
        last = found?.job;
        if (
          found === undefined ||
          hasEnded(found.job) ||
          signal.aborted ||
          this.#closed ||
          performance.now() >= until
        )
          return found;
      }
      const notice = await ended;
      if (notice !== undefined && notice !== 'changed') return notice;
      isTold = notice === 'changed';
      ended = undefined;
      mayHaveEnded = true;
      woken = true;
    }
  }

  /**
   * The end of a job that is gone, from its last known state: another server ended it at its time to live.
   * Only where the waiter was woken for this change. Otherwise the job may have ended in any way, and may have
   * been purged, while its wake-up was lost.
   */
  #outlived(last: Job): JobOutcome | undefined {
    const now = this.#deps.clock.now();
    return hasEnded(last) || !transitions.isExpired(last, now)
      ? undefined
      : outcomeOf(transitions.expire(last, now));
  }
}

/** The job's outcome without a read, where the change has both parts. */
export function outcomeOf({ job, output, error }: JobChange): JobOutcome | undefined {
  return output === undefined || error === undefined ? undefined : { job, payloads: { output, error } };
}
