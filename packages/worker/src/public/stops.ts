import { messageOf } from '../failure.ts';
import { Backoff } from '../pace.ts';
import { pause } from '../pause.ts';
import type { Answer } from './http-client.ts';
import { pauseAfterEmpty, pauseAfterTooMany } from './polling.ts';
import type { Polling } from './polling.ts';

/** Asks which jobs to stop, all the time until the signal ends it. */
export async function followStops(polling: Polling, signal: AbortSignal): Promise<void> {
  const backoff = new Backoff(polling.pace);
  if (polling.addresses.stops === undefined) return;
  while (!signal.aborted)
    await pause(await askOnce(polling, polling.addresses.stops, backoff, signal), signal);
}

async function askOnce(
  { http, consumer, log, pace }: Polling,
  address: string,
  backoff: Backoff,
  signal: AbortSignal,
): Promise<number> {
  const askedAt = Date.now();
  let why: string;
  try {
    const answer = await http.ask(address, { silenceMs: pace.poll, signal });
    if (answer.status === 429) return pauseAfterTooMany(answer, pace);
    if (answer.status === 200 || answer.status === 204) {
      backoff.reset();
      const stopped = jobsToStop(answer).filter((jobId) => consumer.stop(jobId));
      // The same jobs again are no news.
      return stopped.length > 0 ? 0 : pauseAfterEmpty(askedAt, pace);
    }
    why = `the server answered ${answer.status}`;
  } catch (error) {
    why = messageOf(error);
  }
  if (signal.aborted) return 0;
  log.warn(`It is not known which jobs to stop: ${why}`);
  return backoff.next();
}

function jobsToStop({ json }: Answer): string[] {
  if (typeof json !== 'object' || json === null || !('jobsToStop' in json) || !Array.isArray(json.jobsToStop))
    return [];
  return json.jobsToStop.filter((jobId) => typeof jobId === 'string');
}
