import type { WholeJob } from '../../store/job-records.ts';
import { inPieces, sendJson, writePiece } from '../raw.ts';
import type { PlainResponse, Response } from '../raw.ts';
import { requestText } from './answers.ts';

/** Up to about here an answer is sent whole, with its length. */
const WHOLE_CHARACTERS = 1024 * 1024;

/** The list of requests. A large one leaves piece by piece, no faster than it is read, and is never in memory as a whole. */
export async function sendRequests(
  response: PlainResponse,
  pieces: AsyncIterable<WholeJob[]>,
  signal: AbortSignal,
): Promise<void> {
  let text = '{"requests":[';
  let separator = '';
  let begun: Response | undefined;
  for await (const jobs of pieces) {
    if (signal.aborted) return;
    for (const job of jobs) {
      text += separator + requestText(job);
      separator = ',';
    }
    if (text.length < WHOLE_CHARACTERS) continue;
    begun ??= beginning(response);
    await writePiece(begun, text, signal);
    text = '';
  }
  text += ']}';
  if (begun === undefined) sendJson(response, 200, text);
  else begun.end(text);
}

function beginning(response: PlainResponse): Response {
  const begun = inPieces(response);
  begun.writeHead(200, { 'content-type': 'application/json; charset=utf-8' });
  return begun;
}
