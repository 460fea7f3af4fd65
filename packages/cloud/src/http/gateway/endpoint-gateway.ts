import type { Duplex } from 'node:stream';
import type { FastifyBaseLogger } from 'fastify';
import type { EndpointCache } from '../../resources/endpoints/endpoint-cache.ts';
import type { Authenticator } from '../../auth/authenticator.ts';
import type { OpenAccesses } from '../../auth/open-access.ts';
import type { Endpoint } from '../../domain/records.ts';
import type { Tracing } from '../../domain/tracing.ts';
import { BerthError } from '../../support/errors.ts';
import { bearerOrBareKey } from '../../auth/bearer.ts';
import { authorizeForEndpoint } from '../../auth/endpoint-access.ts';
import type { EndpointAccess } from '../../auth/endpoint-access.ts';
import { admitRequest } from '../connection-limit.ts';
import { toBerthError } from '../http.errors.ts';
import { abortOnClose } from '../raw-http.ts';
import type { Request, Response } from '../raw-http.ts';
import { endWhenRevoked } from '../revocable-response.ts';
import type { GatewayUrl } from './gateway-url.ts';
import { parseWorkerAffinity, WORKER_HEADER } from './worker-affinity.ts';
import { LoadBalancer } from './load-balancer.ts';
import { takeBufferedBody } from './request-body-sender.ts';
import { UpgradeClient } from './upgrade-client.ts';
import { RequestDeadlines } from './request-deadlines.ts';
import { forwardRequest } from './forward-request.ts';
import { upstreamRequestHead } from './gateway-headers.ts';
import { traceForwarded } from './gateway-trace.ts';
import { GATEWAY_LIMITS } from './gateway-limits.ts';
import type { GatewayLimits } from './gateway-limits.ts';
import { WORKER_PROXY_POLICY } from './proxy-policy.ts';
import type { Upstream, WorkerPool } from '../../domain/endpoints/worker-pool.ts';
import { discardBody, GatewayError, sendGatewayError, requestTooLarge } from './gateway.errors.ts';
import { tunnelUpgrade } from './upgrade-tunnel.ts';
import { UpstreamConnectionPool } from './upstream/upstream-connection-pool.ts';

const AFFINITY_HEADER = WORKER_HEADER.toLowerCase();

export interface EndpointGatewayDeps {
  pool: WorkerPool;
  authenticator: Authenticator;
  openAccesses: OpenAccesses;
  endpoints: EndpointCache;
  log: FastifyBaseLogger;
  limits?: Partial<GatewayLimits>;
  onHeld?(milliseconds: number): void;
  tracing?: Tracing | undefined;
}

/**
 * The proxy of load balancing endpoints: forwards every request to one of the endpoint's workers.
 * There are no retries: only a request of which no worker has seen anything goes to another one.
 */
export class EndpointGateway {
  readonly #deps: EndpointGatewayDeps;
  readonly #limits: GatewayLimits;
  readonly #balancer: LoadBalancer;
  readonly #connections: UpstreamConnectionPool;
  readonly #deadlines: RequestDeadlines;
  /** Connections with an upgrade, or that ask for one. */
  readonly #upgrades = new Set<Duplex>();

  constructor(deps: EndpointGatewayDeps) {
    this.#deps = deps;
    this.#limits = { ...GATEWAY_LIMITS, ...deps.limits };
    this.#balancer = new LoadBalancer({ ...deps, limits: this.#limits });
    this.#connections = new UpstreamConnectionPool(this.#limits.connectMs);
    this.#deadlines = new RequestDeadlines(this.#limits.requestMs);
  }

  /**
   * `expectsContinue`: the client has sent its headers and waits for `100 Continue`, which it gets once there
   * is a worker.
   */
  async serve(request: Request, response: Response, url: GatewayUrl, expectsContinue = false): Promise<void> {
    try {
      const { endpoint, key, token } = await this.#authorize(request, url.endpointId);
      admitRequest(request.socket, key.accountId);
      endWhenRevoked(this.#deps.openAccesses, {
        response,
        credential: token,
        expiresAt: key.expiresAt,
        authorize: async () => (await this.#authorize(request, url.endpointId)).key,
        sendError: (error) => sendGatewayError(response, error),
      });
      const traceparent = traceForwarded(this.#deps.tracing, request, response, {
        'berth.endpoint_id': endpoint.id,
      });
      const head = upstreamRequestHead(request, url, undefined, traceparent);
      if (head.length !== undefined && head.length > this.#limits.bodyBytes)
        throw requestTooLarge(this.#limits.bodyBytes);
      let body: Buffer | undefined;
      await this.#withWorker(
        endpoint,
        request,
        () => abortOnClose(response),
        (worker) => {
          body ??= takeBufferedBody(request, head.length);
          return forwardRequest({
            request,
            response,
            upstream: worker,
            url,
            policy: WORKER_PROXY_POLICY,
            head,
            body,
            connections: this.#connections,
            deadlines: this.#deadlines,
            limits: this.#limits,
            expectsContinue,
          });
        },
      );
    } catch (error) {
      discardBody(request);
      this.#sendError(response, error, url);
    }
  }

  /**
   * A WebSocket, or another protocol that begins with a request. While it is open it counts as one request in
   * flight.
   */
  async upgrade(request: Request, socket: Duplex, head: Buffer, url: GatewayUrl): Promise<void> {
    const client = new UpgradeClient(socket, head);
    this.#upgrades.add(socket);
    socket.on('close', () => this.#upgrades.delete(socket));
    try {
      const { endpoint, key, token } = await this.#authorize(request, url.endpointId);
      admitRequest(request.socket, key.accountId);
      const unwatch = this.#deps.openAccesses.watch({
        credential: token,
        expiresAt: key.expiresAt,
        authorize: async () => (await this.#authorize(request, url.endpointId)).key,
        revoke: () => socket.destroy(),
      });
      if (socket.destroyed) unwatch();
      else socket.on('close', unwatch);
      const upgradeHead = upstreamRequestHead(request, url, request.headers.upgrade);
      if (upgradeHead.length !== 0) throw new BerthError('rule', 'an upgrade request must not have a body');
      await this.#withWorker(
        endpoint,
        request,
        () => client.gone,
        (worker) =>
          tunnelUpgrade({
            request,
            client,
            upstream: worker,
            url,
            policy: WORKER_PROXY_POLICY,
            head: upgradeHead,
            connections: this.#connections,
            deadlines: this.#deadlines,
            limits: this.#limits,
          }),
      );
    } catch (error) {
      if (!socket.destroyed) this.#sendError(client.createResponse(request), error, url);
    }
  }

  /** Requests that wait for a worker. */
  get held(): number {
    return this.#balancer.held;
  }

  /** How many requests each worker of an endpoint has in flight. */
  inFlightByWorker(endpointId: string): ReadonlyMap<string, number> {
    return this.#balancer.inFlightByWorker(endpointId);
  }

  /** Requests of an endpoint in flight and waiting. */
  demand(endpointId: string): number {
    return this.#balancer.demand(endpointId);
  }

  /**
   * An endpoint was changed or removed: applies that to waiting requests. Without an id, all endpoints are
   * checked.
   */
  refreshEndpoint(endpointId?: string): void {
    this.#balancer.refreshEndpoint(endpointId);
  }

  /**
   * The server stops: waiting requests are rejected and upgraded connections closed. Requests in flight may
   * end.
   */
  close(): void {
    this.#balancer.close();
    for (const socket of this.#upgrades) socket.destroy();
    this.#connections.close();
  }

  async #authorize(request: Request, endpointId: string): Promise<EndpointAccess & { token: string }> {
    const token = bearerOrBareKey(request.headers.authorization) ?? '';
    const { endpoint, key } = await authorizeForEndpoint(this.#deps, token, endpointId, 'write');
    if (endpoint.type !== 'LOAD_BALANCER') throw new BerthError('rule', 'not allowed for QB API');
    return { endpoint, key, token };
  }

  /** Finds a worker for a request, and another one if it cannot be reached. */
  async #withWorker(
    endpoint: Endpoint,
    request: Request,
    disconnected: () => AbortSignal,
    send: (worker: Upstream) => Promise<boolean>,
  ): Promise<void> {
    const pending = this.#balancer.register(endpoint, parseWorkerAffinity(request.headers[AFFINITY_HEADER]));
    let signal: AbortSignal | undefined;
    let slot =
      this.#balancer.tryAcquire(pending) ??
      (await this.#balancer.acquire(pending, (signal = disconnected())));
    try {
      while (!(await send(slot.worker)))
        slot = await this.#balancer.reacquire(pending, slot, (signal ??= disconnected()));
    } finally {
      slot.release();
    }
  }

  #sendError(response: Response, error: unknown, { endpointId }: GatewayUrl): void {
    sendGatewayError(
      response,
      error instanceof GatewayError ? error : toBerthError(error, this.#deps.log, endpointId),
    );
  }
}
