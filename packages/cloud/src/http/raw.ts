import type { IncomingMessage, ServerResponse } from 'node:http';
import { BerthError } from '../support/errors.ts';

/**
 * The busy interfaces, jobs and workers, are served on Node's own request and response: a
 * web framework's share of the time would be larger than that of all the rest together.
 */
export type Request = IncomingMessage;
export type Response = ServerResponse;

const JSON_TYPE = 'application/json; charset=utf-8';

export function sendJson(response: Response, status: number, body: string, headers: Record<string, string> = {}): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(status, { 'content-type': JSON_TYPE, 'content-length': Buffer.byteLength(body), ...headers });
  response.end(body);
}

export function sendNothing(response: Response): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(204);
  response.end();
}

/** The body as text. One over the limit is refused as soon as that is known; the rest of it is read and thrown away, so that the answer arrives. */
export function readBody(request: Request, limit: number): Promise<string> {
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
    request.on('end', () => resolve(chunks.length === 1 ? (chunks[0] as Buffer).toString() : Buffer.concat(chunks).toString()));
    request.on('error', reject);
    request.on('close', () => {
      if (!request.complete) reject(new BerthError('malformed', 'the request ended before its body'));
    });
  });
}

function tooLarge(limit: number): BerthError {
  return new BerthError('too-large', `the body is larger than the ${limit} bytes that are read here`);
}

/** Aborts when the client goes away before it was answered. */
export function goneSignal(response: Response): AbortSignal {
  const controller = new AbortController();
  response.on('close', () => controller.abort());
  return controller.signal;
}
