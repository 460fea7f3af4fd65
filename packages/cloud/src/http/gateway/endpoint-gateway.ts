import type { Duplex } from 'node:stream';
import type { FastifyBaseLogger } from 'fastify';
import type { EndpointCache } from '../../resources/endpoints/endpoint-cache.ts';
import type { Authenticator } from '../../auth/authenticator.ts';
import type { Endpoint } from '../../domain/records.ts';
import { BerthError } from '../../support/errors.ts';
import { bearerOrBareKey } from '../../auth/bearer.ts';
import { authorizeForEndpoint } from '../../auth/endpoint-access.ts';
import { toBerthError } from '../http.errors.ts';
import { abortOnClose } from '../raw-http.ts';
import type { Request, Response } from '../raw-http.ts';
import type { GatewayUrl } from './gateway-url.ts';
import { parseWorkerAffinity, WORKER_HEADER } from './worker-affinity.ts';
import { LoadBalancer } from './load-balancer.ts';
import { takeBufferedBody } from './request-body-sender.ts';
import { UpgradeClient } from './upgrade-client.ts';
import { RequestDeadlines } from './request-deadlines.ts';
import { forwardRequest } from './forward-request.ts';
import { upstreamRequestHead } from './gateway-headers.ts';
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
  endpoints: EndpointCache;
  log: FastifyBaseLogger;
  limits?: Partial<GatewayLimits>;
}

/**
 * In front of load balancing endpoints: takes every request to one of the endpoint's workers.
 * There are no retries: only a request that no worker has seen anything of goes to another one.
 */
export class EndpointGateway {
  readonly #deps: EndpointGatewayDeps;
  readonly #limits: GatewayLimits;
  readonly #balancer: LoadBalancer;
  readonly #connections: UpstreamConnectionPool;
  readonly #deadlines: RequestDeadlines;
  /** Connections that ask for, or speak, another protocol. */
  readonly #callers = new Set<Duplex>();

  constructor(deps: EndpointGatewayDeps) {
    this.#deps = deps;
    this.#limits = { ...GATEWAY_LIMITS, ...deps.limits };
    this.#balancer = new LoadBalancer({ ...deps, limits: this.#limits });
    this.#connections = new UpstreamConnectionPool(this.#limits.connectMs);
    this.#deadlines = new RequestDeadlines(this.#limits.requestMs);
  }

  /** `waitsToContinue`: the client has sent its headers and waits for `100 Continue`; it gets that once a worker is there. */
  async serve(
    request: Request,
    response: Response,
    address: GatewayUrl,
    waitsToContinue = false,
  ): Promise<void> {
    try {
      const endpoint = await this.#admit(request, address.endpointId);
      const head = upstreamRequestHead(request, address);
      if (head.length !== undefined && head.length > this.#limits.bodyBytes)
        throw requestTooLarge(this.#limits.bodyBytes);
      let body: Buffer | undefined;
      await this.#withPlace(
        endpoint,
        request,
        () => abortOnClose(response),
        (worker) => {
          body ??= takeBufferedBody(request, head.length);
          return forwardRequest({
            request,
            response,
            upstream: worker,
            url: address,
            policy: WORKER_PROXY_POLICY,
            head,
            body,
            connections: this.#connections,
            deadlines: this.#deadlines,
            limits: this.#limits,
            expectsContinue: waitsToContinue,
          });
        },
      );
    } catch (error) {
      discardBody(request);
      this.#refuse(response, error, address);
    }
  }

  /** A WebSocket, or any other protocol that begins as a request. While it is open it counts as one request in flight. */
  async upgrade(request: Request, socket: Duplex, head: Buffer, address: GatewayUrl): Promise<void> {
    const caller = new UpgradeClient(socket, head);
    this.#callers.add(socket);
    socket.on('close', () => this.#callers.delete(socket));
    try {
      const endpoint = await this.#admit(request, address.endpointId);
      const opening = upstreamRequestHead(request, address, request.headers.upgrade);
      if (opening.length !== 0)
        throw new BerthError('rule', 'a request that changes the protocol has no body');
      await this.#withPlace(
        endpoint,
        request,
        () => caller.gone,
        (worker) =>
          tunnelUpgrade({
            request,
            client: caller,
            upstream: worker,
            url: address,
            policy: WORKER_PROXY_POLICY,
            head: opening,
            connections: this.#connections,
            deadlines: this.#deadlines,
            limits: this.#limits,
          }),
      );
    } catch (error) {
      if (!socket.destroyed) this.#refuse(caller.createResponse(request), error, address);
    }
  }

  /** How many requests each worker of an endpoint has in flight. */
  inFlightByWorker(endpointId: string): ReadonlyMap<string, number> {
    return this.#balancer.inFlightByWorker(endpointId);
  }

  /** Requests of an endpoint in flight and waiting. */
  demand(endpointId: string): number {
    return this.#balancer.demand(endpointId);
  }

  /** An endpoint has changed or gone: that counts for those who wait too. Without an id, any may have. */
  refreshEndpoint(endpointId?: string): void {
    this.#balancer.refreshEndpoint(endpointId);
  }

  /** The server stops: nobody waits any longer, and open connections of other protocols are closed. Requests under way may end. */
  close(): void {
    this.#balancer.close();
    for (const socket of this.#callers) socket.destroy();
    this.#connections.close();
  }

  async #admit(request: Request, endpointId: string): Promise<Endpoint> {
    const token = bearerOrBareKey(request.headers.authorization);
    const { endpoint } = await authorizeForEndpoint(this.#deps, token, endpointId, 'write');
    if (endpoint.type !== 'LOAD_BALANCER') throw new BerthError('rule', 'not allowed for QB API');
    return endpoint;
  }

  /** Gets a worker for a request, and another one for as long as none can be reached. */
  async #withPlace(
    endpoint: Endpoint,
    request: Request,
    gone: () => AbortSignal,
    send: (worker: Upstream) => Promise<boolean>,
  ): Promise<void> {
    const visit = this.#balancer.register(endpoint, parseWorkerAffinity(request.headers[AFFINITY_HEADER]));
    let signal: AbortSignal | undefined;
    let place = this.#balancer.tryAcquire(visit) ?? (await this.#balancer.acquire(visit, (signal = gone())));
    try {
      while (!(await send(place.worker)))
        place = await this.#balancer.reacquire(visit, place, (signal ??= gone()));
    } finally {
      place.release();
    }
  }

  #refuse(response: Response, error: unknown, { endpointId }: GatewayUrl): void {
    sendGatewayError(
      response,
      error instanceof GatewayError ? error : toBerthError(error, this.#deps.log, endpointId),
    );
  }
}
