import type { Duplex } from 'node:stream';
import type { FastifyBaseLogger } from 'fastify';
import { STATUS_CODES } from '../support/node-http.ts';
import type { EndpointCache } from '../resources/endpoints/endpoint-cache.ts';
import { toBerthError } from './http.errors.ts';
import { parseEndpointHost, parseEndpointPath } from './gateway/gateway-url.ts';
import type { GatewayUrl } from './gateway/gateway-url.ts';
import { keepSocketOpen } from './gateway/upgrade-client.ts';
import type { WildcardDomain } from './gateway/wildcard-domain.ts';
import type { EndpointGateway } from './gateway/endpoint-gateway.ts';
import type { PodGateway } from './gateway/pod-gateway.ts';
import { parseJobUrl } from './jobs/job-url.ts';
import type { JobUrl } from './jobs/job-url.ts';
import type { JobRoutes } from './jobs/jobs.routes.ts';
import type { FlashUrlResolver } from './jobs/flash-url-resolver.ts';
import { sendJobError, JOB_ERROR_STATUS } from './jobs/jobs.errors.ts';
import type { OpenAiRoutes } from './openai/openai.routes.ts';
import type { Request, Response } from './raw-http.ts';
import { discardRest } from './raw-http.ts';
import { requestIdOf } from './request-id.ts';
import type { RequestObserver } from './request-observer.ts';
import type { TerminalRoutes } from './terminal/terminal.routes.ts';
import { CHANNEL_PROTOCOL } from './workers/worker-channel.ts';
import { WorkerChannels } from './workers/worker-channels.ts';
import { decodePathSegment } from './workers/workers.routes.ts';
import type { WorkerRoutes, WorkerRoutesDeps } from './workers/workers.routes.ts';
import type { GrantedAccess, OpenAccesses } from '../auth/open-access.ts';
import { bearerOrBareKey } from '../auth/bearer.ts';

/** Patterns of what the gateway forwards, for logs and metrics. */
const POD_ROUTE = '/proxy/:podPort/*';
const WORKER_ROUTE = '/v2/:endpointId/*';

export interface EndpointRouterDeps {
  openAccesses: OpenAccesses;
  jobs: JobRoutes;
  workers: WorkerRoutes;
  queue: WorkerRoutesDeps['queue'];
  log: FastifyBaseLogger;
  /** Endpoints that are called by name. */
  flash?: FlashUrlResolver;
  /** Load balancing endpoints and the OpenAI interface; without it there are neither. */
  loadBalancing?: {
    gateway: EndpointGateway;
    openai: OpenAiRoutes;
    endpoints: EndpointCache;
    domain: WildcardDomain;
  };
  /** The HTTP ports of pods. */
  pods?: PodGateway;
  /** The terminals of pods and workers. */
  terminals?: TerminalRoutes;
  /** Other servers, which prove that they are. Both answer false for requests of anybody else. */
  peers?: {
    serve(request: Request, response: Response): boolean;
    upgrade(request: Request, socket: Duplex, head: Buffer): boolean;
  };
  requestObserver?: RequestObserver;
}

/**
 * Routes every request below `/v2/{endpoint_id}` and `/proxy`, or under an endpoint's or a pod's own host
 * name.
 */
export class EndpointRouter {
  readonly #deps: EndpointRouterDeps;
  readonly #channels: WorkerChannels;
  #closing = false;

  constructor(deps: EndpointRouterDeps) {
    this.#deps = deps;
    this.#channels = new WorkerChannels(deps.openAccesses);
  }

  /** Calls `next` for requests that are for neither an endpoint nor a pod. */
  serve(request: Request, response: Response, next: () => void, expectsContinue = false): void {
    if (isInternal(request) && this.#deps.peers?.serve(request, response) === true) return;
    const podPort = this.#deps.pods?.match(request);
    if (podPort !== undefined) {
      if (this.#closing) response.shouldKeepAlive = false;
      this.#deps.requestObserver?.observeForwarded(request, response, POD_ROUTE, 'pod');
      return void this.#deps.pods?.serve(request, response, podPort, expectsContinue);
    }
    if (this.#deps.flash?.handles(request.url ?? '') === true)
      return void this.#serveByName(request, response, next, expectsContinue);
    const url = parseJobUrl(request.url ?? '');
    const gatewayUrl = this.#gatewayUrl(request);
    // An open connection would keep the server from stopping.
    if (this.#closing && (url !== undefined || gatewayUrl !== undefined)) response.shouldKeepAlive = false;
    if (gatewayUrl !== undefined)
      void this.#serveEndpoint(request, response, url, gatewayUrl, next, expectsContinue);
    else if (url === undefined || !this.#serveQueue(request, response, url)) next();
  }

  async #serveByName(
    request: Request,
    response: Response,
    next: () => void,
    expectsContinue: boolean,
  ): Promise<void> {
    try {
      const url = await this.#deps.flash?.resolve(request);
      if (url === undefined || !this.#deps.jobs.handles(url.operation)) return next();
      if (this.#closing) response.shouldKeepAlive = false;
      if (expectsContinue) response.writeContinue();
      this.#deps.requestObserver?.observe(request, response, endpointRoute(url));
      await this.#deps.jobs.serve(request, response, url);
    } catch (error) {
      discardRest(request);
      sendJobError(response, toBerthError(error, this.#deps.log, 'flash'));
    }
  }

  /**
   * On a load balancing endpoint every path belongs to the worker; on a queue endpoint the operations of the
   * job API come first.
   */
  async #serveEndpoint(
    request: Request,
    response: Response,
    url: JobUrl | undefined,
    gatewayUrl: GatewayUrl,
    next: () => void,
    expectsContinue: boolean,
  ): Promise<void> {
    const { loadBalancing, log } = this.#deps;
    try {
      const endpoint =
        loadBalancing?.endpoints.findCached(gatewayUrl.endpointId) ??
        (await loadBalancing?.endpoints.find(gatewayUrl.endpointId));
      // Under an endpoint's own host name every path belongs to the worker.
      if (
        endpoint?.type !== 'LOAD_BALANCER' &&
        gatewayUrl.prefix !== '' &&
        url !== undefined &&
        this.#isQueueOperation(url.operation)
      ) {
        if (expectsContinue) response.writeContinue();
        return void this.#serveQueue(request, response, url);
      }
      if (endpoint === undefined && gatewayUrl.prefix !== '') return next();
      this.#deps.requestObserver?.observeForwarded(request, response, WORKER_ROUTE, 'worker');
      await loadBalancing?.gateway.serve(request, response, gatewayUrl, expectsContinue);
    } catch (error) {
      sendJobError(response, toBerthError(error, log, gatewayUrl.endpointId));
    }
  }

  /** The server is stopping. */
  get closing(): boolean {
    return this.#closing;
  }

  #isQueueOperation(operation: string): boolean {
    const { jobs, workers, loadBalancing } = this.#deps;
    return (
      jobs.handles(operation) ||
      workers.handles(operation) ||
      loadBalancing?.openai.handles(operation) === true
    );
  }

  #serveQueue(request: Request, response: Response, url: JobUrl): boolean {
    const { jobs, workers, loadBalancing, requestObserver } = this.#deps;
    const routes = [jobs, workers, loadBalancing?.openai].find(
      (candidate) => candidate?.handles(url.operation) === true,
    );
    if (routes === undefined) return false;
    requestObserver?.observe(request, response, endpointRoute(url));
    void routes.serve(request, response, url);
    return true;
  }

  #gatewayUrl(request: Request): GatewayUrl | undefined {
    const { loadBalancing } = this.#deps;
    if (loadBalancing === undefined) return undefined;
    return (
      parseEndpointHost(request.headers.host, request.url ?? '', loadBalancing.domain) ??
      parseEndpointPath(request.url ?? '')
    );
  }

  /** Upgrades to the worker channel, a terminal, or a protocol of a pod or a load balancing endpoint. */
  async upgrade(request: Request, socket: Duplex, head: Buffer): Promise<void> {
    const { workers, queue, log } = this.#deps;
    // Nothing else listens to this socket now, and an unhandled error would end the process.
    socket.on('error', () => socket.destroy());
    if (isInternal(request) && this.#deps.peers?.upgrade(request, socket, head) === true) return;
    const podPort = this.#deps.pods?.match(request);
    const observe = (route: string): void =>
      this.#deps.requestObserver?.observeUpgrade(request, socket, route);
    const requestId = requestIdOf(request);
    if (podPort !== undefined) {
      observe(POD_ROUTE);
      return this.#deps.pods?.upgrade(request, socket, head, podPort);
    }
    const terminal = this.#deps.terminals?.match(request.url ?? '');
    if (terminal !== undefined) {
      observe('terminal');
      return this.#deps.terminals?.upgrade(request, socket, head, terminal);
    }
    const url = parseJobUrl(request.url ?? '');
    if (url?.operation !== 'job-channel' || request.headers.upgrade !== CHANNEL_PROTOCOL) {
      const gatewayUrl = this.#gatewayUrl(request);
      observe(WORKER_ROUTE);
      return gatewayUrl === undefined
        ? rejectUpgrade(socket, '404 Not Found', requestId)
        : this.#deps.loadBalancing?.gateway.upgrade(request, socket, head, gatewayUrl);
    }
    observe(endpointRoute(url));
    let workerId: string;
    let access: GrantedAccess;
    const authorize = async (): Promise<GrantedAccess> =>
      (await workers.authorize(request, url.endpointId, workerId)).key ?? {};
    try {
      workerId = decodePathSegment(url.rest[0] ?? '');
      access = await authorize();
    } catch (error) {
      log.info({ err: error, workerId: url.rest[0], reqId: requestId }, 'a worker channel was refused');
      const status = JOB_ERROR_STATUS[toBerthError(error, log, url.endpointId).code];
      return rejectUpgrade(socket, `${status} ${STATUS_CODES[status]}`, requestId);
    }
    if (socket.destroyed) return;
    // The channels are closed, and the queue gives out no more jobs.
    if (this.#closing) return rejectUpgrade(socket, '503 Service Unavailable', requestId);
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${CHANNEL_PROTOCOL}\r\n` +
        `Berth-Takes-Back: yes\r\nBerth-Keeps-Chunks: yes\r\nBerth-Answers: yes\r\n` +
        `X-Request-Id: ${requestId}\r\n\r\n`,
    );
    keepSocketOpen(socket);
    if (head.length > 0) socket.unshift(head);
    this.#channels.open(
      { socket, queue, endpointId: url.endpointId, workerId, log },
      {
        credential: bearerOrBareKey(request.headers.authorization) ?? '',
        expiresAt: access.expiresAt ?? null,
        authorize,
      },
    );
  }

  /** The server stops: ends everything that waits, and sends the workers to other servers. */
  close(): void {
    this.#closing = true;
    this.#deps.queue.close();
    this.#deps.loadBalancing?.openai.close();
    this.#deps.loadBalancing?.gateway.close();
    this.#deps.pods?.close();
    this.#deps.terminals?.close();
    this.#channels.close();
  }
}

function isInternal({ url }: Request): boolean {
  return url?.startsWith('/internal/') === true;
}

function rejectUpgrade(socket: Duplex, status: string, requestId: string): void {
  socket.end(
    `HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\nX-Request-Id: ${requestId}\r\n\r\n`,
  );
}

/** The pattern of an endpoint's address, for logs and metrics. */
export function endpointRoute({ operation }: JobUrl): string {
  return `/v2/:endpointId/${operation}`;
}
