import type { Socket } from 'node:net';
import type { Request, Response } from '../raw-http.ts';

/** Another version of HTTP, or the same one encrypted. */
const HTTP_PROTOCOLS = /^(h2c?|http\/.*|tls\/.*)$/i;

/**
 * Whether a request really asks to speak something else than HTTP. Many clients offer `h2c` with
 * their first request and are content with HTTP/1.1: a server that does not speak it answers as if
 * nothing was offered.
 */
export function requestsUpgrade({ headers }: Pick<Request, 'headers'>): boolean {
  return (headers.upgrade ?? '')
    .split(',')
    .some((offer) => offer.trim() !== '' && !HTTP_PROTOCOLS.test(offer.trim()));
}

/**
 * Knows which requests change the protocol of their connection. An offer that comes while an
 * earlier request on the connection is still being answered is not taken up, as no server has to: the
 * connection is not free, and the request is answered in its turn like any other.
 */
export class UpgradeDetector {
  /** The last answer on each connection. */
  readonly #answers = new WeakMap<Socket, Response>();

  trackResponse(request: Request, response: Response): void {
    this.#answers.set(request.socket, response);
  }

  shouldUpgrade(request: Request): boolean {
    return requestsUpgrade(request) && this.#answers.get(request.socket)?.writableFinished !== false;
  }
}
