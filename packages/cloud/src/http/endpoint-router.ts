import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { FastifyBaseLogger } from 'fastify';
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
import type { FastPathRequest, FastPathResponse } from './fast-path/fast-path-exchange.ts';
import type { FastPathHead } from './fast-path/fast-path-head.ts';
import type { FastPath } from './fast-path/fast-path.ts';
import type { OpenAiRoutes } from './openai/openai.routes.ts';
import type { Request, Response } from './raw-http.ts';
import type { TerminalRoutes } from './terminal/terminal.routes.ts';
import { CHANNEL_PROTOCOL } from './workers/worker-channel.ts';
import { WorkerChannels } from './workers/worker-channels.ts';
import { decodePathSegment } from './workers/workers.routes.ts';
import type { WorkerRoutes, WorkerRoutesDeps } from './workers/workers.routes.ts';

export interface EndpointRouterDeps {
  jobs: JobRoutes;
  workers: WorkerRoutes;
  queue: WorkerRoutesDeps['queue'];
  log: FastifyBaseLogger;
  /** Endpoints that are called by name. */
  flash?: FlashUrlResolver;
  /** What load balancing endpoints and the OpenAI interface need; without it there are neither. */
  loadBalancing?: {
    gateway: EndpointGateway;
    openai: OpenAiRoutes;
    endpoints: EndpointCache;
    domain: WildcardDomain;
  };
  /** What is for the HTTP ports of pods. */
  pods?: PodGateway;
  /** What is for the terminals of pods and workers. */
  terminals?: TerminalRoutes;
}

/** What comes over the fast lane: small requests with small answers. Streams are for Node's HTTP. */
const FAST_PATH_OPERATIONS = new Set([
  'run',
  'runsync',
  'status',
  'cancel',
  'job-take',
  'job-take-batch',
  'job-done',
  'job-stream',
  'job-stop',
  'ping',
]);

/** Everything below `/v2/{endpoint_id}` and `/proxy`, or under an endpoint's or a pod's own host name: sorts it and hands it to whoever serves that. */
export class EndpointRouter {
  readonly #deps: EndpointRouterDeps;
  readonly #channels: WorkerChannels;
  readonly #fastPath: FastPath[] = [];
  /** Of heads on the fast lane: null where it is none of its addresses. */
  readonly #laneAddresses = new WeakMap<FastPathHead, JobUrl | null>();
  #closing = false;

  constructor(deps: EndpointRouterDeps) {
    this.#deps = deps;
    this.#channels = new WorkerChannels((listener) => deps.workers.onKeysChanged(listener));
  }

  /** What is for neither an endpoint nor a pod goes to `others`. */
  serve(request: Request, response: Response, others: () => void, waitsToContinue = false): void {
    const podPort = this.#deps.pods?.match(request);
    if (podPort !== undefined) {
      if (this.#closing) response.shouldKeepAlive = false;
      return void this.#deps.pods?.serve(request, response, podPort, waitsToContinue);
    }
    if (this.#deps.flash?.handles(request.url ?? '') === true)
      return void this.#serveByName(request, response, others, waitsToContinue);
    const address = parseJobUrl(request.url ?? '');
    const balanced = this.#balanced(request);
    // A connection that is kept would keep the server from ending.
    if (this.#closing && (address !== undefined || balanced !== undefined)) response.shouldKeepAlive = false;
    if (balanced !== undefined)
      void this.#sort(request, response, address, balanced, others, waitsToContinue);
    else if (address === undefined || !this.#serveQueue(request, response, address)) others();
  }

  async #serveByName(
    request: Request,
    response: Response,
    others: () => void,
    waitsToContinue: boolean,
  ): Promise<void> {
    try {
      const address = await this.#deps.flash?.resolve(request);
      if (address === undefined || !this.#deps.jobs.handles(address.operation)) return others();
      if (this.#closing) response.shouldKeepAlive = false;
      if (waitsToContinue) response.writeContinue();
      await this.#deps.jobs.serve(request, response, address);
    } catch (error) {
      if (!request.readableEnded) request.resume();
      sendJobError(response, toBerthError(error, this.#deps.log, 'flash'));
    }
  }

  /** On a load balancing endpoint every path is the worker's own; on a queue endpoint the words of the job interface count. */
  async #sort(
    request: Request,
    response: Response,
    address: JobUrl | undefined,
    balanced: GatewayUrl,
    others: () => void,
    waitsToContinue: boolean,
  ): Promise<void> {
    const { loadBalancing, log } = this.#deps;
    try {
      const endpoint =
        loadBalancing?.endpoints.findCached(balanced.endpointId) ??
        (await loadBalancing?.endpoints.find(balanced.endpointId));
      // A path under an endpoint's own host name is the worker's, whatever it looks like.
      if (
        endpoint?.type !== 'LOAD_BALANCER' &&
        balanced.prefix !== '' &&
        address !== undefined &&
        this.#isQueueWord(address.operation)
      ) {
        if (waitsToContinue) response.writeContinue();
        return void this.#serveQueue(request, response, address);
      }
      if (endpoint === undefined && balanced.prefix !== '') return others();
      await loadBalancing?.gateway.serve(request, response, balanced, waitsToContinue);
    } catch (error) {
      sendJobError(response, toBerthError(error, log, balanced.endpointId));
    }
  }

  /** Plain requests to queue endpoints; what is under an endpoint's own host name is not. */
  wants(head: FastPathHead): boolean | Promise<boolean> {
    const { loadBalancing } = this.#deps;
    const address = this.#laneAddress(head);
    if (address === null || loadBalancing === undefined) return address !== null;
    const known = loadBalancing.endpoints.findCached(address.endpointId);
    if (known !== undefined) return known.type === 'QUEUE';
    return loadBalancing.endpoints.find(address.endpointId).then((found) => found?.type !== 'LOAD_BALANCER');
  }

  servePlain(request: FastPathRequest, response: FastPathResponse): void {
    const address = this.#laneAddress(request.head) as JobUrl;
    if (this.#deps.jobs.handles(address.operation)) void this.#deps.jobs.serve(request, response, address);
    else void this.#deps.workers.serve(request, response, address);
  }

  /** Found out once for each head, of which a connection has few. */
  #laneAddress(head: FastPathHead): JobUrl | null {
    let address = this.#laneAddresses.get(head);
    if (address === undefined) {
      address = this.#findLaneAddress(head) ?? null;
      this.#laneAddresses.set(head, address);
    }
    return address;
  }

  #findLaneAddress(head: FastPathHead): JobUrl | undefined {
    const { pods, loadBalancing } = this.#deps;
    const address = parseJobUrl(head.url);
    if (
      address === undefined ||
      !FAST_PATH_OPERATIONS.has(address.operation) ||
      pods?.match(head) !== undefined
    )
      return undefined;
    if (loadBalancing === undefined) return address;
    return parseEndpointHost(head.headers.host, head.url, loadBalancing.domain) !== undefined ||
      address.endpointId.includes('%')
      ? undefined
      : address;
  }

  /** The server stops. */
  get closing(): boolean {
    return this.#closing;
  }

  #isQueueWord(operation: string): boolean {
    const { jobs, workers, loadBalancing } = this.#deps;
    return (
      jobs.handles(operation) ||
      workers.handles(operation) ||
      loadBalancing?.openai.handles(operation) === true
    );
  }

  #serveQueue(request: Request, response: Response, address: JobUrl): boolean {
    const { jobs, workers, loadBalancing } = this.#deps;
    if (jobs.handles(address.operation)) void jobs.serve(request, response, address);
    else if (workers.handles(address.operation)) void workers.serve(request, response, address);
    else if (loadBalancing?.openai.handles(address.operation) === true)
      void loadBalancing.openai.serve(request, response, address);
    else return false;
    return true;
  }

  #balanced(request: Request): GatewayUrl | undefined {
    const { loadBalancing } = this.#deps;
    if (loadBalancing === undefined) return undefined;
    return (
      parseEndpointHost(request.headers.host, request.url ?? '', loadBalancing.domain) ??
      parseEndpointPath(request.url ?? '')
    );
  }

  /** A worker asks for the fast channel, somebody for a terminal, or a client of a pod or a load balancing endpoint for a protocol of its own. */
  async upgrade(request: Request, socket: Duplex, head: Buffer): Promise<void> {
    const { workers, queue, log } = this.#deps;
    // Nobody else listens to this socket now, and an error that nobody hears ends the process.
    socket.on('error', () => socket.destroy());
    const podPort = this.#deps.pods?.match(request);
    if (podPort !== undefined) return this.#deps.pods?.upgrade(request, socket, head, podPort);
    const terminal = this.#deps.terminals?.match(request.url ?? '');
    if (terminal !== undefined) return this.#deps.terminals?.upgrade(request, socket, head, terminal);
    const address = parseJobUrl(request.url ?? '');
    if (address?.operation !== 'job-channel' || request.headers.upgrade !== CHANNEL_PROTOCOL) {
      const balanced = this.#balanced(request);
      return balanced === undefined
        ? rejectUpgrade(socket, '404 Not Found')
        : this.#deps.loadBalancing?.gateway.upgrade(request, socket, head, balanced);
    }
    let workerId: string;
    const admit = (): Promise<unknown> => workers.authorize(request, address.endpointId, workerId);
    try {
      workerId = decodePathSegment(address.rest[0] ?? '');
      await admit();
    } catch (error) {
      log.info({ err: error, workerId: address.rest[0] }, 'a worker was refused the channel');
      const status = JOB_ERROR_STATUS[toBerthError(error, log, address.endpointId).code];
      return rejectUpgrade(socket, `${status} ${STATUS_CODES[status]}`);
    }
    if (socket.destroyed) return;
    // The channels have been told to go away, and the queue gives nothing more.
    if (this.#closing) return rejectUpgrade(socket, '503 Service Unavailable');
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${CHANNEL_PROTOCOL}\r\nBerth-Takes-Back: yes\r\nBerth-Keeps-Chunks: yes\r\nBerth-Answers: yes\r\n\r\n`,
    );
    keepSocketOpen(socket);
    if (head.length > 0) socket.unshift(head);
    this.#channels.open({ socket, queue, endpointId: address.endpointId, workerId, log }, admit);
  }

  /** The connections of a server on the fast lane end with the rest. */
  addFastPath(fastPath: FastPath): void {
    this.#fastPath.push(fastPath);
  }

  /** Whoever is still being answered on the fast lane is cut off. */
  destroyFastPathConnections(): void {
    for (const fastPath of this.#fastPath) fastPath.destroyConnections();
  }

  /** Lets everyone go who waits, and sends the workers elsewhere: the server stops. */
  close(): void {
    this.#closing = true;
    this.#deps.queue.close();
    this.#deps.loadBalancing?.openai.close();
    this.#deps.loadBalancing?.gateway.close();
    this.#deps.pods?.close();
    this.#deps.terminals?.close();
    this.#channels.close();
    for (const fastPath of this.#fastPath) fastPath.close();
  }
}

function rejectUpgrade(socket: Duplex, status: string): void {
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}
