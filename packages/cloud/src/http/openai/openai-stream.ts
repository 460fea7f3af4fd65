import { hasEnded } from '../../domain/job-status.ts';
import type { JobQueue } from '../../queue/job-queue.ts';
import type { Job, JobOutcome } from '../../domain/job-records.ts';
import type { Response } from '../raw-http.ts';
import { jsonArrayElements } from './openai-output.ts';
import { sseEvent, SseEncoder, encodeValue } from './openai-events.ts';
import { errorJson, toJobFailure, SERVER_STOPPING } from './openai.errors.ts';
import type { OpenAiError } from './openai.errors.ts';

/** Read from the store at a time. */
const PAGE_BYTES = 1024 * 1024;
const RECHECK_MS = 15_000;

const WORKER_LOST: OpenAiError = {
  message: 'the worker was lost in the middle of its answer',
  type: 'server_error',
  code: 'worker_lost',
};

export interface StreamRelayOptions {
  queue: JobQueue;
  job: Job;
  response: Response;
  /** Aborts when the client has gone or the server stops. */
  signal: AbortSignal;
  /** When a job that nobody has taken by then is given up, by `performance.now()`. */
  giveUpAt: number;
}

export interface StreamOutcome {
  /** The response has begun, and is complete. */
  sent: boolean;
  /** The job as it was last read. */
  found: JobOutcome | undefined;
}

/**
 * Relays the chunks of a running job. The response begins with the first chunk: if nothing was
 * sent, because the job failed before that or was given up, the caller answers.
 */
export async function relayStream({
  queue,
  job,
  response,
  signal,
  giveUpAt,
}: StreamRelayOptions): Promise<StreamOutcome> {
  const { endpointId, seq } = job;
  const events = new SseEncoder();
  let read = 0;
  let retries = job.retries;
  let change: Promise<void> | undefined;
  let sawEnd = false;
  for (;;) {
    const left = giveUpAt - performance.now();
    change ??= queue.waitForChange(
      endpointId,
      seq,
      left > 0 ? Math.min(left, RECHECK_MS) : RECHECK_MS,
      signal,
    );
    // The chunks are read first: if the job was not requeued after that, they are of the current attempt.
    const chunks = await queue.streams.read(endpointId, seq, read, PAGE_BYTES);
    const found = await queue.find(endpointId, seq);
    if (signal.aborted)
      return response.headersSent ? finish(response, found, SERVER_STOPPING.error) : { sent: false, found };
    if (found !== undefined && found.job.retries !== retries) {
      // Its worker was lost, and another one starts again. That works only if nothing was sent yet.
      if (response.headersSent) return finish(response, found, WORKER_LOST);
      retries = found.job.retries;
      read = 0;
      sawEnd = false;
    } else if (chunks.length > 0) {
      read = chunks.at(-1)?.number ?? read;
      await write(response, chunks.map(({ text }) => events.encode(text)).join(''), signal);
    } else if (found === undefined || hasEnded(found.job)) {
      // Its last chunks may have arrived between the two reads.
      if (found !== undefined && !sawEnd) sawEnd = true;
      else return await conclude(response, found, read > 0, signal);
    } else if (found.job.status === 'IN_QUEUE' && performance.now() >= giveUpAt) {
      return { sent: response.headersSent, found };
    } else {
      await change;
      change = undefined;
    }
  }
}

async function conclude(
  response: Response,
  found: JobOutcome | undefined,
  streamed: boolean,
  signal: AbortSignal,
): Promise<StreamOutcome> {
  const failure = toJobFailure(found);
  if (failure !== undefined)
    return response.headersSent ? finish(response, found, failure.error) : { sent: false, found };
  if (!streamed) await write(response, outputText(found?.payloads.output ?? null), signal);
  return finish(response, found);
}

/** The output of a job that streamed nothing: each element of an array as a chunk, or the whole value. */
function outputText(output: string | null): string {
  if (output === null) return '';
  return (jsonArrayElements(output) ?? [output]).map(encodeValue).join('');
}

async function write(response: Response, text: string, signal: AbortSignal): Promise<void> {
  if (!response.headersSent)
    response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
    });
  if (text === '' || response.write(text) || signal.aborted) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      response.off('drain', done).off('close', done);
      signal.removeEventListener('abort', done);
      resolve();
    };
    response.on('drain', done).on('close', done);
    signal.addEventListener('abort', done, { once: true });
  });
}

/** Ends the response, after an error event if there is an error. */
function finish(response: Response, found: JobOutcome | undefined, error?: OpenAiError): StreamOutcome {
  response.end(error === undefined ? undefined : sseEvent(errorJson(error)));
  return { sent: true, found };
}
