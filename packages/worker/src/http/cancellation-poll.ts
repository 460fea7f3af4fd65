import { errorMessage } from '../error-report.ts';
import { Backoff } from '../timings.ts';
import { delay } from '../delay.ts';
import type { HttpResponse } from './http-client.ts';
import type { PollContext } from './poll-context.ts';
import { emptyPollDelayMs, rateLimitDelayMs } from './poll-delays.ts';

/** Long-polls for cancelled jobs until the signal is aborted. */
export async function pollCancellations(polling: PollContext, signal: AbortSignal): Promise<void> {
  const backoff = new Backoff(polling.timings);
  if (polling.urls.cancellations === undefined) return;
  while (!signal.aborted)
    await delay(await pollOnce(polling, polling.urls.cancellations, backoff, signal), signal);
}

async function pollOnce(
  { http, consumer, log, timings }: PollContext,
  address: string,
  backoff: Backoff,
  signal: AbortSignal,
): Promise<number> {
  const askedAt = Date.now();
  let why: string;
  try {
    const answer = await http.request(address, { idleTimeoutMs: timings.pollTimeout, signal });
    if (answer.status === 429) return rateLimitDelayMs(answer, timings);
    if (answer.status === 200 || answer.status === 204) {
      backoff.reset();
      const stopped = cancelledJobIds(answer).filter((jobId) => consumer.abortJob(jobId));
      // The same jobs again change nothing.
      return stopped.length > 0 ? 0 : emptyPollDelayMs(askedAt, timings);
    }
    why = `the server answered ${answer.status}`;
  } catch (error) {
    why = errorMessage(error);
  }
  if (signal.aborted) return 0;
  log.warn(`It is not known which jobs to stop: ${why}`);
  return backoff.next();
}

function cancelledJobIds({ json }: HttpResponse): string[] {
  if (typeof json !== 'object' || json === null || !('jobsToStop' in json) || !Array.isArray(json.jobsToStop))
    return [];
  return json.jobsToStop.filter((jobId) => typeof jobId === 'string');
}
