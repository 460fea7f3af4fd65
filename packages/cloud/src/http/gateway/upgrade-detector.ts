import type { Socket } from 'node:net';
import type { Request, Response } from '../raw-http.ts';

/** Another version of HTTP, or the same one encrypted. */
const HTTP_PROTOCOLS = /^(h2c?|http\/.*|tls\/.*)$/i;

/**
 * Whether a request asks for a protocol other than HTTP. Many clients offer `h2c` with their first
 * request and accept HTTP/1.1: a server without it ignores the offer.
 */
export function requestsUpgrade({ headers }: Pick<Request, 'headers'>): boolean {
  return (headers.upgrade ?? '')
    .split(',')
    .some((offer) => offer.trim() !== '' && !HTTP_PROTOCOLS.test(offer.trim()));
}

/**
 * Decides which requests upgrade their connection. An offer that arrives while an earlier request
 * of the connection is being answered is ignored, which HTTP allows: the request is then answered
 * like any other.
 */
export class UpgradeDetector {
  /** The last response on each connection. */
  readonly #responses = new WeakMap<Socket, Response>();

  trackResponse(request: Request, response: Response): void {
    this.#responses.set(request.socket, response);
  }

  shouldUpgrade(request: Request): boolean {
    return requestsUpgrade(request) && this.#responses.get(request.socket)?.writableFinished !== false;
  }
}
