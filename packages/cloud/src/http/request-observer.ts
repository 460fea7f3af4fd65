import { randomUUID } from 'node:crypto';
import type { Duplex } from 'node:stream';
import type { FastifyBaseLogger } from 'fastify';
import type { BasicRequest, BasicResponse } from './raw-http.ts';
import type { HttpMetrics, RequestKind } from './metrics.ts';
import { requestIdOf, traceIdOf } from './request-id.ts';

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
    const requestId = randomUUID();
    response.setHeader('x-request-id', requestId);
    this.#follow(request, response, route, 'berth', requestId);
  }

  /**
   * A request that something else than Berth's own routes answers. The id is `requestIdOf(request)`, and
   * the handler that answers adds it to the headers.
   */
  observeForwarded(
    request: BasicRequest,
    response: BasicResponse,
    route: string,
    kind: Exclude<RequestKind, 'berth'>,
  ): void {
    this.#follow(request, response, route, kind, undefined);
  }

  /** A connection that asks for another protocol. It is logged when it closes. */
  observeUpgrade(request: BasicRequest, socket: Duplex, route: string): void {
    if (!this.#isLogged) return;
    const start = performance.now();
    socket.on('close', () =>
      this.#log.debug(
        {
          reqId: requestIdOf(request),
          ...tracedBy(request),
          method: request.method,
          path: request.url?.split('?')[0],
          route,
          ms: Math.round(performance.now() - start),
        },
        'upgraded connection',
      ),
    );
  }

  #follow(
    request: BasicRequest,
    response: BasicResponse,
    route: string,
    kind: RequestKind,
    requestId: string | undefined,
  ): void {
    const start = performance.now();
    response.on('close', () => {
      const status = response.headersSent ? response.statusCode : CLIENT_CLOSED_REQUEST;
      const milliseconds = performance.now() - start;
      this.#metrics.observe(request.method ?? '', route, status, milliseconds / 1000, kind);
      if (!this.#isLogged) return;
      this.#log.debug(
        {
          reqId: requestId ?? requestIdOf(request),
          ...tracedBy(request),
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

function tracedBy(request: object): { traceId?: string } {
  const traceId = traceIdOf(request);
  return traceId === undefined ? {} : { traceId };
}
