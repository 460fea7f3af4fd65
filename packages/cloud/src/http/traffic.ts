import type { Duplex } from 'node:stream';
import type { FastifyBaseLogger } from 'fastify';
import { jobAddress } from './jobs/address.ts';
import type { JobFace } from './jobs/face.ts';
import type { Request, Response } from './raw.ts';
import { CHANNEL_PROTOCOL, WorkerChannel } from './workers/channel.ts';
import type { WorkerFace, WorkerFaceParts } from './workers/face.ts';

export interface TrafficParts {
  jobs: JobFace;
  workers: WorkerFace;
  queue: WorkerFaceParts['queue'];
  log: FastifyBaseLogger;
}

/** Everything below `/v2/{endpoint_id}`: sorts it by operation and hands it to whoever serves that. */
export class EndpointTraffic {
  readonly #parts: TrafficParts;
  readonly #channels = new Set<WorkerChannel>();
  #closing = false;

  constructor(parts: TrafficParts) {
    this.#parts = parts;
  }

  /** False where the address is none of an endpoint: then somebody else answers. */
  serve(request: Request, response: Response): boolean {
    const address = jobAddress(request.url ?? '');
    if (address === undefined) return false;
    // A connection that is kept would keep the server from ending.
    if (this.#closing) response.shouldKeepAlive = false;
    const { jobs, workers } = this.#parts;
    if (jobs.handles(address.operation)) void jobs.serve(request, response, address);
    else if (workers.handles(address.operation)) void workers.serve(request, response, address);
    else return false;
    return true;
  }

  /** A worker asks for the fast channel. */
  async upgrade(request: Request, socket: Duplex, head: Buffer): Promise<void> {
    const { workers, queue, log } = this.#parts;
    const address = jobAddress(request.url ?? '');
    const workerId = address?.rest[0] ?? '';
    if (address?.operation !== 'job-channel' || request.headers.upgrade !== CHANNEL_PROTOCOL) return refuse(socket, '404 Not Found');
    try {
      await workers.admit(request, address.endpointId, workerId);
    } catch (error) {
      log.info({ err: error, workerId }, 'a worker was refused the channel');
      return refuse(socket, '401 Unauthorized');
    }
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${CHANNEL_PROTOCOL}\r\n\r\n`);
    if ('setNoDelay' in socket && typeof socket.setNoDelay === 'function') socket.setNoDelay(true);
    if (head.length > 0) socket.unshift(head);
    const channel = new WorkerChannel({ socket, queue, endpointId: address.endpointId, workerId, log });
    this.#channels.add(channel);
    socket.on('close', () => this.#channels.delete(channel));
  }

  /** Lets everyone go who waits, and sends the workers elsewhere: the server stops. */
  close(): void {
    this.#closing = true;
    this.#parts.queue.close();
    for (const channel of this.#channels) channel.goAway();
  }
}

function refuse(socket: Duplex, status: string): void {
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}
