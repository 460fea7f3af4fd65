import type { Job } from '../../domain/job-records.ts';

/** Of more jobs than these, the ones that were handed out first are forgotten. */
const MAX_JOBS = 20_000;

/** A job as it was handed out, and the place of that version of its row. */
export interface HandedOutJob {
  job: Job;
  ctid: string;
}

/**
 * The jobs that this server handed out, as they were then. Nothing is lost with them: see
 * finish-handed-out.ts. They are known by their number alone: of two endpoints' jobs with the same number,
 * the first is forgotten.
 */
export class HandedOutJobs {
  readonly #jobs = new Map<number, HandedOutJob>();

  add(handedOut: HandedOutJob): void {
    this.#jobs.set(handedOut.job.seq, handedOut);
    if (this.#jobs.size <= MAX_JOBS) return;
    for (const oldest of this.#jobs.keys()) {
      this.#jobs.delete(oldest);
      break;
    }
  }

  /** Answers it once: after a change it is no longer as it was. */
  remove(endpointId: string, seq: number): HandedOutJob | undefined {
    const handedOut = this.#jobs.get(seq);
    if (handedOut?.job.endpointId !== endpointId) return undefined;
    this.#jobs.delete(seq);
    return handedOut;
  }
}
