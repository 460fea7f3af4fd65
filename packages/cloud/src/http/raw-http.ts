import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { ServerResponse } from '../support/node-http.ts';
import { LightCancelSignal } from '../support/cancel-signal.ts';
import type { CancelSignal } from '../support/cancel-signal.ts';
import { BerthError } from '../support/errors.ts';
import { heavyTurns } from '../support/fair-turns.ts';
import { discardBody, receiveInTurns } from './body-turns.ts';

/**
 * The busy interfaces are served without a web framework: it would take more time than everything
 * else together.
 */
export type Request = IncomingMessage;
export type Response = ServerResponse;

/** What most operations need of a request. Node's requests have it, and those of the fast path too. */
export interface BasicRequest {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly headers: IncomingHttpHeaders;
  /** Whether all of it has arrived. */
  readonly complete: boolean;
  readonly destroyed: boolean;
  readonly readableEnded: boolean;
  readonly socket: { destroySoon(): void };
  /** The body, if it was read whole before the request was served. */
  readonly body?: string;
  /** Whether that body was UTF-8; invalid bytes are U+FFFD in it. */
  readonly isUtf8?: boolean;
}

/** What most operations need of a response. */
export interface BasicResponse {
  readonly headersSent: boolean;
  readonly statusCode: number;
  readonly destroyed: boolean;
  /** Whether the connection is kept for another request. */
  shouldKeepAlive: boolean;
  setHeader(name: string, value: string): unknown;
  writeHead(status: number, headers?: Record<string, string | number>): unknown;
  end(body?: string): unknown;
  /** A faster way to send 200 with JSON, if there is one. */
  endOkJson?(body: string): void;
  /**
   * Sends 200 with JSON in pieces, each after the one before has left. Without it, the response is a stream
   * of Node's.
   */
  endOkJsonPieces?(pieces: readonly Uint8Array[], length: number): void;
  destroy(): unknown;
  /** `finish`: the response has left this process. `close`: the exchange is over, answered or not. */
  on(event: 'finish' | 'close', listener: () => void): unknown;
}

/** A response that is written piece by piece. The fast path has none: it leaves such requests to Node. */
export function asStreamingResponse(response: BasicResponse): Response {
  if (response instanceof ServerResponse) return response;
  throw new Error('this operation cannot be served on the fast path');
}

/** Writes a piece, and waits until the client has read enough for the next one, or has left. */
export async function writeWithBackpressure(
  response: Response,
  text: string | Uint8Array,
  signal: AbortSignal,
): Promise<void> {
  if (response.write(text) || signal.aborted) return;
  await new Promise<void>((resolve) => {
    const proceed = (): void => {
      response.off('drain', proceed);
      signal.removeEventListener('abort', proceed);
      resolve();
    };
    response.once('drain', proceed);
    signal.addEventListener('abort', proceed, { once: true });
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

/**
 * A large answer goes out in pieces of this size: it never fills the buffers of the connection, and others
 * are served in between.
 */
export const PIECE_BYTES = 256 * 1024;

/** Sends 200 with JSON at the speed of the client. Resolves when all of it has left, or the client has. */
export async function sendLargeJson(
  response: BasicResponse,
  parts: readonly Uint8Array[],
  signal: AbortSignal,
): Promise<void> {
  if (response.headersSent || response.destroyed) return;
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const pieces = parts.flatMap(piecesOf);
  if (response.endOkJsonPieces !== undefined) {
    response.endOkJsonPieces(pieces, length);
    return aborted(signal);
  }
  const stream = asStreamingResponse(response);
  stream.writeHead(200, { 'content-type': JSON_CONTENT_TYPE, 'content-length': length });
  for (const piece of pieces) {
    if (signal.aborted) return;
    await writeWithBackpressure(stream, piece, signal);
  }
  stream.end();
  await aborted(signal);
}

/** Views into the bytes: nothing is copied. */
function piecesOf(bytes: Uint8Array): Uint8Array[] {
  return Array.from({ length: Math.ceil(bytes.length / PIECE_BYTES) }, (_, index) =>
    bytes.subarray(index * PIECE_BYTES, (index + 1) * PIECE_BYTES),
  );
}

/** The signal of an exchange aborts when the exchange is over, answered or not. */
function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

export function sendNoContent(response: BasicResponse): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(204);
  response.end();
}

/** Reads what is left of a body that nobody wants, so that the response arrives. */
export function discardRest(request: BasicRequest): void {
  if (!request.readableEnded) discardBody(request as IncomingMessage);
}

/**
 * The body as text. A body over the limit is refused as soon as that is known; the rest is read and
 * discarded, so that the response arrives.
 */
export async function readBody(request: BasicRequest, limit: number): Promise<string> {
  if (request.body === undefined)
    return joined(await readPieces(request as IncomingMessage, limit)).toString();
  if (request.body.length > limit) throw tooLarge(limit);
  return request.body;
}

/** To join and decode so much takes a millisecond: bodies of accounts do so in turns. */
const HEAVY_BODY_BYTES = 512 * 1024;

/** The same for text that is stored as received: a body that is not UTF-8 is refused. */
export async function readUtf8Body(request: BasicRequest, limit: number, accountId: string): Promise<string> {
  const buffered = bufferedUtf8Body(request, limit);
  if (buffered !== undefined) return buffered;
  const pieces = await readPieces(request as IncomingMessage, limit);
  const size = pieces.reduce((sum, { length }) => sum + length, 0);
  if (size >= HEAVY_BODY_BYTES) await heavyTurns.next(accountId);
  const bytes = joined(pieces);
  if (!isUtf8(bytes)) throw notUtf8();
  return bytes.toString();
}

/** The same without waiting; undefined if the body was not read before. */
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

function joined(pieces: readonly Buffer[]): Buffer {
  return pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces);
}

function readPieces(request: IncomingMessage, limit: number): Promise<Buffer[]> {
  const announced = Number(request.headers['content-length'] ?? 0);
  if (announced > limit) {
    discardBody(request);
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
    receiveInTurns(request);
    request.on('end', () => resolve(chunks));
    request.on('error', reject);
    request.on('close', () => {
      if (!request.complete) reject(new BerthError('malformed', 'the request ended before its body did'));
    });
  });
}

function tooLarge(limit: number): BerthError {
  return new BerthError('too-large', `the body is larger than the ${limit} bytes that are accepted here`);
}

/**
 * Created once: an abort without a reason creates an error with a stack trace, which costs more than the
 * request.
 */
const EXCHANGE_CLOSED = new Error('the exchange is over');

/** Aborts when the client disconnects, and after the response: nothing has to wait for it any longer. */
export function abortOnClose(response: BasicResponse): AbortSignal {
  const controller = new AbortController();
  // Closed already: there will be no other event.
  if (response.destroyed) controller.abort(EXCHANGE_CLOSED);
  else response.on('close', () => controller.abort(EXCHANGE_CLOSED));
  return controller.signal;
}

/** The same, lighter, for one wait at a time. */
export function cancelOnClose(response: BasicResponse): CancelSignal {
  const signal = new LightCancelSignal();
  if (response.destroyed) signal.abort();
  else response.on('close', () => signal.abort());
  return signal;
}
