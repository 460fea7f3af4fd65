import { randomUUID } from 'node:crypto';
import type { FastifyBaseLogger } from 'fastify';
import type { BasicRequest, BasicResponse } from './raw-http.ts';
import type { HttpMetrics } from './metrics.ts';

/** The status that is recorded where the client left before it was answered. */
const CLIENT_CLOSED_REQUEST = 499;

/**
 * Gives the requests that do not pass through the web framework an id, an access log and metrics, as it does
 * for its own.
 */
export class RequestObserver {
  readonly #log: FastifyBaseLogger;
  readonly #metrics: HttpMetrics;
  /** Spares busy servers the entry where it would be dropped. */
  readonly #isLogged: boolean;

  constructor(log: FastifyBaseLogger, metrics: HttpMetrics) {
    this.#log = log;
    this.#metrics = metrics;
    this.#isLogged = log.level === 'debug' || log.level === 'trace';
  }

  /** `route` is the pattern, not the path: ids would make a series of each request. */
  observe(request: BasicRequest, response: BasicResponse, route: string): void {
    const start = performance.now();
    const requestId = randomUUID();
    response.setHeader('x-request-id', requestId);
    response.on('close', () => {
      const status = response.headersSent ? response.statusCode : CLIENT_CLOSED_REQUEST;
      const milliseconds = performance.now() - start;
      this.#metrics.observe(request.method ?? '', route, status, milliseconds / 1000);
      if (!this.#isLogged) return;
      this.#log.debug(
        {
          reqId: requestId,
          method: request.method,
          // The path alone: a query string may carry a key.
          path: request.url?.split('?')[0],
          status,
          ms: Math.round(milliseconds),
        },
        'request',
      );
    });
  }
}
