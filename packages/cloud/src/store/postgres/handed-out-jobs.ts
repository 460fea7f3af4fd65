import type { Job } from '../../domain/job-records.ts';
import { jobKey } from './job-key.ts';

/** Of more jobs than these, the ones that were handed out first are forgotten. */
const MAX_JOBS = 10_000;

/** The jobs that this server handed out, as they were then. Nothing is lost with them: see finish-handed-out.ts. */
export class HandedOutJobs {
  readonly #jobs = new Map<string, Job>();

  add(job: Job): void {
    this.#jobs.set(jobKey(job.endpointId, job.seq), job);
    if (this.#jobs.size <= MAX_JOBS) return;
    for (const oldest of this.#jobs.keys()) {
      this.#jobs.delete(oldest);
      break;
    }
  }

  /** Answers it once: after a change it is no longer as it was. */
  remove(endpointId: string, seq: number): Job | undefined {
    const key = jobKey(endpointId, seq);
    const job = this.#jobs.get(key);
    this.#jobs.delete(key);
    return job;
  }
}
