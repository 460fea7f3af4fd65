import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { FastifyBaseLogger } from 'fastify';
import type { EndpointDirectory } from '../resources/endpoints/directory.ts';
import { asBerthError } from './failures.ts';
import { hostAddress, pathAddress } from './gateway/address.ts';
import type { GatewayAddress } from './gateway/address.ts';
import { lasting } from './gateway/caller.ts';
import type { Domain } from './gateway/domain.ts';
import type { Gateway } from './gateway/gateway.ts';
import type { PodGateway } from './gateway/pod-gateway.ts';
import { jobAddress } from './jobs/address.ts';
import type { JobAddress } from './jobs/address.ts';
import type { JobFace } from './jobs/face.ts';
import type { FlashAddresses } from './jobs/flash-addresses.ts';
import { failJob, JOB_STATUS_CODES } from './jobs/failures.ts';
import type { LaneRequest, LaneResponse } from './lane/exchange.ts';
import type { Head } from './lane/head.ts';
import type { Lanes } from './lane/lanes.ts';
import type { OpenAiFace } from './openai/face.ts';
import type { Request, Response } from './raw.ts';
import type { TerminalFace } from './terminal/face.ts';
import { CHANNEL_PROTOCOL } from './workers/channel.ts';
import { Channels } from './workers/channels.ts';
import { decoded } from './workers/face.ts';
import type { WorkerFace, WorkerFaceParts } from './workers/face.ts';

export interface TrafficParts {
  jobs: JobFace;
  workers: WorkerFace;
  queue: WorkerFaceParts['queue'];
  log: FastifyBaseLogger;
  /** Endpoints that are called by name. */
  flash?: FlashAddresses;
  /** What load balancing endpoints and the OpenAI interface need; without it there are neither. */
  balancing?: { gateway: Gateway; openai: OpenAiFace; endpoints: EndpointDirectory; domain: Domain };
  /** What is for the HTTP ports of pods. */
  pods?: PodGateway;
  /** What is for the terminals of pods and workers. */
  terminals?: TerminalFace;
}

/** What comes over the fast lane: small requests with small answers. Streams are for Node's HTTP. */
const LANE_OPERATIONS = new Set([
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
export class EndpointTraffic {
  readonly #parts: TrafficParts;
  readonly #channels: Channels;
  readonly #lanes: Lanes[] = [];
  /** Of heads on the fast lane: null where it is none of its addresses. */
  readonly #laneAddresses = new WeakMap<Head, JobAddress | null>();
  #closing = false;

  constructor(parts: TrafficParts) {
    this.#parts = parts;
    this.#channels = new Channels((listener) => parts.workers.watchKeys(listener));
  }

  /** What is for neither an endpoint nor a pod goes to `others`. */
  serve(request: Request, response: Response, others: () => void, waitsToContinue = false): void {
    const podPort = this.#parts.pods?.address(request);
    if (podPort !== undefined) {
      if (this.#closing) response.shouldKeepAlive = false;
      return void this.#parts.pods?.serve(request, response, podPort, waitsToContinue);
    }
    if (this.#parts.flash?.handles(request.url ?? '') === true)
      return void this.#serveByName(request, response, others, waitsToContinue);
    const address = jobAddress(request.url ?? '');
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
      const address = await this.#parts.flash?.resolve(request);
      if (address === undefined || !this.#parts.jobs.handles(address.operation)) return others();
      if (this.#closing) response.shouldKeepAlive = false;
      if (waitsToContinue) response.writeContinue();
      await this.#parts.jobs.serve(request, response, address);
    } catch (error) {
      if (!request.readableEnded) request.resume();
      failJob(response, asBerthError(error, this.#parts.log, 'flash'));
    }
  }

  /** On a load balancing endpoint every path is the worker's own; on a queue endpoint the words of the job interface count. */
  async #sort(
    request: Request,
    response: Response,
    address: JobAddress | undefined,
    balanced: GatewayAddress,
    others: () => void,
    waitsToContinue: boolean,
  ): Promise<void> {
    const { balancing, log } = this.#parts;
    try {
      const endpoint =
        balancing?.endpoints.known(balanced.endpointId) ??
        (await balancing?.endpoints.find(balanced.endpointId));
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
      await balancing?.gateway.serve(request, response, balanced, waitsToContinue);
    } catch (error) {
      failJob(response, asBerthError(error, log, balanced.endpointId));
    }
  }

  /** Plain requests to queue endpoints; what is under an endpoint's own host name is not. */
  wants(head: Head): boolean | Promise<boolean> {
    const { balancing } = this.#parts;
    const address = this.#laneAddress(head);
    if (address === null || balancing === undefined) return address !== null;
    const known = balancing.endpoints.known(address.endpointId);
    if (known !== undefined) return known.type === 'QUEUE';
    return balancing.endpoints.find(address.endpointId).then((found) => found?.type !== 'LOAD_BALANCER');
  }

  servePlain(request: LaneRequest, response: LaneResponse): void {
    const address = this.#laneAddress(request.head) as JobAddress;
    if (this.#parts.jobs.handles(address.operation)) void this.#parts.jobs.serve(request, response, address);
    else void this.#parts.workers.serve(request, response, address);
  }

  /** Found out once for each head, of which a connection has few. */
  #laneAddress(head: Head): JobAddress | null {
    let address = this.#laneAddresses.get(head);
    if (address === undefined) {
      address = this.#findLaneAddress(head) ?? null;
      this.#laneAddresses.set(head, address);
    }
    return address;
  }

  #findLaneAddress(head: Head): JobAddress | undefined {
    const { pods, balancing } = this.#parts;
    const address = jobAddress(head.url);
    if (address === undefined || !LANE_OPERATIONS.has(address.operation) || pods?.address(head) !== undefined)
      return undefined;
    if (balancing === undefined) return address;
    return hostAddress(head.headers.host, head.url, balancing.domain) !== undefined ||
      address.endpointId.includes('%')
      ? undefined
      : address;
  }

  /** The server stops. */
  get closing(): boolean {
    return this.#closing;
  }

  #isQueueWord(operation: string): boolean {
    const { jobs, workers, balancing } = this.#parts;
    return (
      jobs.handles(operation) || workers.handles(operation) || balancing?.openai.handles(operation) === true
    );
  }

  #serveQueue(request: Request, response: Response, address: JobAddress): boolean {
    const { jobs, workers, balancing } = this.#parts;
    if (jobs.handles(address.operation)) void jobs.serve(request, response, address);
    else if (workers.handles(address.operation)) void workers.serve(request, response, address);
    else if (balancing?.openai.handles(address.operation) === true)
      void balancing.openai.serve(request, response, address);
    else return false;
    return true;
  }

  #balanced(request: Request): GatewayAddress | undefined {
    const { balancing } = this.#parts;
    if (balancing === undefined) return undefined;
    return (
      hostAddress(request.headers.host, request.url ?? '', balancing.domain) ?? pathAddress(request.url ?? '')
    );
  }

  /** A worker asks for the fast channel, somebody for a terminal, or a client of a pod or a load balancing endpoint for a protocol of its own. */
  async upgrade(request: Request, socket: Duplex, head: Buffer): Promise<void> {
    const { workers, queue, log } = this.#parts;
    // Nobody else listens to this socket now, and an error that nobody hears ends the process.
    socket.on('error', () => socket.destroy());
    const podPort = this.#parts.pods?.address(request);
    if (podPort !== undefined) return this.#parts.pods?.upgrade(request, socket, head, podPort);
    const terminal = this.#parts.terminals?.address(request.url ?? '');
    if (terminal !== undefined) return this.#parts.terminals?.upgrade(request, socket, head, terminal);
    const address = jobAddress(request.url ?? '');
    if (address?.operation !== 'job-channel' || request.headers.upgrade !== CHANNEL_PROTOCOL) {
      const balanced = this.#balanced(request);
      return balanced === undefined
        ? refuse(socket, '404 Not Found')
        : this.#parts.balancing?.gateway.upgrade(request, socket, head, balanced);
    }
    let workerId: string;
    const admit = (): Promise<unknown> => workers.admit(request, address.endpointId, workerId);
    try {
      workerId = decoded(address.rest[0] ?? '');
      await admit();
    } catch (error) {
      log.info({ err: error, workerId: address.rest[0] }, 'a worker was refused the channel');
      const status = JOB_STATUS_CODES[asBerthError(error, log, address.endpointId).code];
      return refuse(socket, `${status} ${STATUS_CODES[status]}`);
    }
    if (socket.destroyed) return;
    // The channels have been told to go away, and the queue gives nothing more.
    if (this.#closing) return refuse(socket, '503 Service Unavailable');
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${CHANNEL_PROTOCOL}\r\nBerth-Takes-Back: yes\r\nBerth-Keeps-Chunks: yes\r\nBerth-Answers: yes\r\n\r\n`,
    );
    lasting(socket);
    if (head.length > 0) socket.unshift(head);
    this.#channels.open({ socket, queue, endpointId: address.endpointId, workerId, log }, admit);
  }

  /** The connections of a server on the fast lane end with the rest. */
  addLanes(lanes: Lanes): void {
    this.#lanes.push(lanes);
  }

  /** Whoever is still being answered on the fast lane is cut off. */
  cut(): void {
    for (const lanes of this.#lanes) lanes.cut();
  }

  /** Lets everyone go who waits, and sends the workers elsewhere: the server stops. */
  close(): void {
    this.#closing = true;
    this.#parts.queue.close();
    this.#parts.balancing?.openai.close();
    this.#parts.balancing?.gateway.close();
    this.#parts.pods?.close();
    this.#parts.terminals?.close();
    this.#channels.close();
    for (const lanes of this.#lanes) lanes.close();
  }
}

function refuse(socket: Duplex, status: string): void {
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}
