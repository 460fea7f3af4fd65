import type { JobWithPayloads } from '../../domain/job-records.ts';
import { asStreamingResponse, sendJson, writeWithBackpressure } from '../raw-http.ts';
import type { BasicResponse, Response } from '../raw-http.ts';
import { jobRequestJson } from './job-json.ts';

/** Up to about this size a response is sent whole, with its length. */
const MAX_BUFFERED_CHARS = 1024 * 1024;

/**
 * Sends the list of jobs. A large list is streamed at the speed of the client, and is never in memory as a
 * whole.
 */
export async function sendJobList(
  response: BasicResponse,
  pieces: AsyncIterable<JobWithPayloads[]>,
  signal: AbortSignal,
): Promise<void> {
  let text = '{"requests":[';
  let separator = '';
  let begun: Response | undefined;
  for await (const jobs of pieces) {
    if (signal.aborted) return;
    for (const job of jobs) {
      text += separator + jobRequestJson(job);
      separator = ',';
    }
    if (text.length < MAX_BUFFERED_CHARS) continue;
    begun ??= startStreaming(response);
    await writeWithBackpressure(begun, text, signal);
    text = '';
  }
  text += ']}';
  if (begun === undefined) sendJson(response, 200, text);
  else begun.end(text);
}

function startStreaming(response: BasicResponse): Response {
  const begun = asStreamingResponse(response);
  begun.writeHead(200, { 'content-type': 'application/json; charset=utf-8' });
  return begun;
}
