import type { JobOutcome, JobOutline } from '../../domain/job-records.ts';
import { ANSWER_BYTES_IN_FLIGHT, SMALL_ANSWER_BYTES } from '../../domain/limits.ts';
import type { Endpoint } from '../../domain/records.ts';
import { AnswerBudget } from '../answer-budget.ts';
import { abortOnClose, sendJson, sendLargeJson } from '../raw-http.ts';
import type { BasicResponse } from '../raw-http.ts';
import { splitAtOutput, jobStatusJson } from './job-json.ts';
import { findJob, missingJob } from './job-operation.ts';
import type { JobCall, JobRoutesDeps } from './job-operation.ts';
import { RecentOutputs } from './recent-outputs.ts';
import { waitingReason } from './waiting-reason.ts';

/**
 * Sends the job, why it waits, and the start that it waited for. Nothing is looked up for a client that has
 * left.
 */
export async function sendJobStatus(
  deps: JobRoutesDeps,
  response: BasicResponse,
  endpoint: Endpoint,
  outcome: JobOutcome,
): Promise<void> {
  if (response.destroyed) return;
  const reason =
    outcome.job.status === 'IN_QUEUE'
      ? await waitingReason(deps.queue, outcome.job, () => deps.noWorkersReason(endpoint))
      : undefined;
  const phases = deps.startPhases?.(outcome.job);
  sendJson(response, 200, jobStatusJson(outcome, reason, phases instanceof Promise ? await phases : phases));
}

/**
 * Answers with the state of a job. A large one is read when there is memory for it, and sent in pieces as it
 * is stored.
 */
export class JobStatusSender {
  readonly #deps: JobRoutesDeps;
  readonly #budget: AnswerBudget;
  readonly #recent = new RecentOutputs();

  constructor(deps: JobRoutesDeps) {
    this.#deps = deps;
    this.#budget = deps.answerBudget ?? new AnswerBudget(ANSWER_BYTES_IN_FLIGHT);
  }

  async find(endpointId: string, seq: number, id: string): Promise<JobOutline> {
    const found = await this.#deps.queue.findOutline(endpointId, seq, SMALL_ANSWER_BYTES);
    if (found === undefined || found.job.id !== id) throw missingJob(id);
    return found;
  }

  async send(call: JobCall, outline: JobOutline): Promise<void> {
    const { response, endpoint, key } = call;
    const { job, bytes, payloads } = outline;
    if (payloads !== undefined) return sendJobStatus(this.#deps, response, endpoint, { job, payloads });
    const signal = abortOnClose(response);
    const release = await this.#budget.acquire(key.accountId, bytes, signal);
    if (release === undefined) return;
    try {
      const start = performance.now();
      const parts = await this.#parts(call, outline);
      this.#budget.rest(performance.now() - start);
      await sendLargeJson(response, parts, signal);
    } finally {
      release();
    }
  }

  async #parts({ endpoint }: JobCall, { job }: JobOutline): Promise<Uint8Array[]> {
    const { queue } = this.#deps;
    if (job.status === 'COMPLETED') {
      const output = await this.#recent.get(job.id, job.endedAt, () =>
        queue.readOutput(endpoint.id, job.seq),
      );
      const phases = await this.#deps.startPhases?.(job);
      const [before, after] = splitAtOutput({ job, payloads: { output: null, error: null } }, phases);
      if (output !== undefined) return [Buffer.from(before), output, Buffer.from(after)];
    }
    // Rare, and large: the input of a job that waits or runs, or an error.
    return [Buffer.from(jobStatusJson(await findJob(queue, endpoint.id, job.seq, job.id)))];
  }
}
