import { isUtf8 } from 'node:buffer';
import { ServerResponse } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { LightCancelSignal } from '../support/cancel-signal.ts';
import type { CancelSignal } from '../support/cancel-signal.ts';
import { BerthError } from '../support/errors.ts';

/**
 * The busy interfaces are served without a web framework: its share of the time would be larger
 * than that of all the rest together.
 */
export type Request = IncomingMessage;
export type Response = ServerResponse;

/** What most operations need of a request. Node's own has it, and so has that of the fast lane. */
export interface BasicRequest {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly headers: IncomingHttpHeaders;
  /** All of it has arrived. */
  readonly complete: boolean;
  readonly destroyed: boolean;
  readonly readableEnded: boolean;
  readonly socket: { destroySoon(): void };
  /** Where it arrived whole, its body. */
  readonly body?: string;
  /** Whether that body was UTF-8; what was not stands in it as U+FFFD. */
  readonly isUtf8?: boolean;
  /** Reads on, and drops what comes. */
  resume(): unknown;
}

/** And of an answer. */
export interface BasicResponse {
  readonly headersSent: boolean;
  readonly destroyed: boolean;
  writeHead(status: number, headers?: Record<string, string | number>): unknown;
  end(body?: string): unknown;
  /** Where it has a short way to say 200 and JSON. */
  endOkJson?(body: string): void;
  destroy(): unknown;
  /** `finish`: the answer has left this process. `close`: the exchange is over, whatever came of it. */
  on(event: 'finish' | 'close', listener: () => void): unknown;
}

/** An answer that is written piece by piece. The fast lane has none: it leaves such requests to Node. */
export function asStreamingResponse(response: BasicResponse): Response {
  if (response instanceof ServerResponse) return response;
  throw new Error('this operation is not one for the fast lane');
}

/** Writes a piece, and waits until the reader has taken enough for the next, or has gone. */
export async function writeWithBackpressure(
  response: Response,
  text: string,
  signal: AbortSignal,
): Promise<void> {
  if (response.write(text) || signal.aborted) return;
  await new Promise<void>((resolve) => {
    const goOn = (): void => {
      response.off('drain', goOn);
      signal.removeEventListener('abort', goOn);
      resolve();
    };
    response.once('drain', goOn);
    signal.addEventListener('abort', goOn, { once: true });
  });
}

export const JSON_CONTENT_TYPE = 'application/json; charset=utf-8';

export function sendJson(
  response: BasicResponse,
  status: number,
  body: string,
  headers?: Record<string, string>,
): void {
  if (response.headersSent || response.destroyed) return;
  if (status === 200 && headers === undefined && response.endOkJson !== undefined)
    return response.endOkJson(body);
  response.writeHead(status, {
    'content-type': JSON_CONTENT_TYPE,
    'content-length': Buffer.byteLength(body),
    ...headers,
  });
  response.end(body);
}

export function sendNoContent(response: BasicResponse): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(204);
  response.end();
}

/** The body as text. One over the limit is refused as soon as that is known; the rest of it is read and thrown away, so that the answer arrives. */
export async function readBody(request: BasicRequest, limit: number): Promise<string> {
  if (request.body === undefined) return (await readStream(request as IncomingMessage, limit)).toString();
  if (request.body.length > limit) throw tooLarge(limit);
  return request.body;
}

/** The same for what has to be kept as it came: what is not UTF-8 is refused. */
export async function readUtf8Body(request: BasicRequest, limit: number): Promise<string> {
  const whole = bufferedUtf8Body(request, limit);
  if (whole !== undefined) return whole;
  const bytes = await readStream(request as IncomingMessage, limit);
  if (!isUtf8(bytes)) throw notUtf8();
  return bytes.toString();
}

/** The same where all of it has arrived, without waiting; else undefined. */
export function bufferedUtf8Body(request: BasicRequest, limit: number): string | undefined {
  const { body } = request;
  if (body === undefined) return undefined;
  if (body.length > limit) throw tooLarge(limit);
  if (request.isUtf8 === false) throw notUtf8();
  return body;
}

function notUtf8(): BerthError {
  return new BerthError('malformed', 'the body is not valid JSON: it is not UTF-8');
}

function readStream(request: IncomingMessage, limit: number): Promise<Buffer> {
  const announced = Number(request.headers['content-length'] ?? 0);
  if (announced > limit) {
    request.resume();
    return Promise.reject(tooLarge(limit));
  }
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= limit) chunks.push(chunk);
      else {
        chunks.length = 0;
        reject(tooLarge(limit));
      }
    });
    request.on('end', () => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)));
    request.on('error', reject);
    request.on('close', () => {
      if (!request.complete) reject(new BerthError('malformed', 'the request ended before its body'));
    });
  });
}

function tooLarge(limit: number): BerthError {
  return new BerthError('too-large', `the body is larger than the ${limit} bytes that are read here`);
}

/** Made once: an abort without a reason makes a new one, with a trace of the calls, and costs more than the request. */
const EXCHANGE_CLOSED = new Error('the exchange is over');

/** Aborts when the client goes away, and when it was answered: whoever still waits on its behalf need not. */
export function abortOnClose(response: BasicResponse): AbortSignal {
  const controller = new AbortController();
  // Over already: nobody will say so again.
  if (response.destroyed) controller.abort(EXCHANGE_CLOSED);
  else response.on('close', () => controller.abort(EXCHANGE_CLOSED));
  return controller.signal;
}

/** The same for one wait at a time, and lighter. */
export function cancelOnClose(response: BasicResponse): CancelSignal {
  const leaving = new LightCancelSignal();
  if (response.destroyed) leaving.abort();
  else response.on('close', () => leaving.abort());
  return leaving;
}
