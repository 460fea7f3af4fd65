import { messageOf } from '../failure.ts';
import type { Job } from '../handler.ts';
import { Backoff } from '../pace.ts';
import { pause } from '../pause.ts';
import { PublicDelivery } from './delivery.ts';
import { pauseAfterEmpty, pauseAfterTooMany } from './polling.ts';
import type { Polling } from './polling.ts';

/**
 * Asks for jobs as long as there is room for some: one question at a time, for as many as there
 * is room for. What was under way when the signal came is ended, but an answer that has begun
 * to come is read, and its jobs are delivered.
 */
export async function takeJobs(polling: Polling, roomGrew: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
  const backoff = new Backoff(polling.pace);
  while (!signal.aborted) {
    const room = polling.consumer.room();
    if (room === 0) await roomGrew(signal);
    else await pause(await takeOnce(polling, room, backoff, signal), signal);
  }
}

/** Answers how long to wait before the next question. */
async function takeOnce({ addresses, http, posts, consumer, log, pace }: Polling, room: number, backoff: Backoff, signal: AbortSignal): Promise<number> {
  const askedAt = Date.now();
  let why: string;
  try {
    const answer = await http.ask(addresses.take(room, consumer.held().length > 0), { silenceMs: pace.poll, signal });
    if (answer.status === 429) return pauseAfterTooMany(answer, pace);
    // 400 is what the hosted service answers to a worker that it has just woken up.
    if (answer.status === 200 || answer.status === 204 || answer.status === 400) {
      backoff.reset();
      const found = answer.status === 200 ? jobsOf(answer.json) : { jobs: [], malformed: 0 };
      for (const job of found.jobs) consumer.deliver(new PublicDelivery(job, posts));
      if (found.malformed > 0) log.error(`The server answered ${found.malformed} jobs without an id that is text; they are left out.`);
      return found.jobs.length > 0 ? 0 : pauseAfterEmpty(askedAt, pace);
    }
    why = `the server answered ${answer.status}`;
  } catch (error) {
    why = messageOf(error);
  }
  if (signal.aborted) return 0;
  log.warn(`No jobs could be taken: ${why}`);
  return backoff.next();
}

/** One job or a list of jobs, whichever was asked for. Every job has an id that is text. */
export function jobsOf(json: unknown): { jobs: Job[]; malformed: number } {
  const found: unknown[] = Array.isArray(json) ? json : json === undefined || json === null ? [] : [json];
  const jobs = found.filter((job): job is Job => isJob(job));
  return { jobs, malformed: found.length - jobs.length };
}

export function isJob(value: unknown): value is Job {
  return typeof value === 'object' && value !== null && 'id' in value && typeof value.id === 'string' && value.id !== '';
}
