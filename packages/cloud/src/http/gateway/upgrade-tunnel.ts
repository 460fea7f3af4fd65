import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Request } from '../raw-http.ts';
import { requestIdOf } from '../request-id.ts';
import type { ForwardedPath } from './gateway-url.ts';
import type { UpgradeClient } from './upgrade-client.ts';
import { keepSocketOpen } from './upgrade-client.ts';
import type { Deadline, RequestDeadlines, DeadlineListener } from './request-deadlines.ts';
import { upgradeResponseHead } from './gateway-headers.ts';
import type { UpstreamRequestHead } from './gateway-headers.ts';
import type { GatewayLimits } from './gateway-limits.ts';
import type { ProxyPolicy } from './proxy-policy.ts';
import type { Upstream } from '../../domain/endpoints/worker-pool.ts';
import { badGateway, upstreamTimeout, sendGatewayError } from './gateway.errors.ts';
import type { GatewayError } from './gateway.errors.ts';
import { ResponseRelay } from './response-relay.ts';
import type { UpstreamConnection, UpstreamListener } from './upstream/upstream-connection.ts';
import type { UpstreamConnectionPool } from './upstream/upstream-connection-pool.ts';
import type { RawHeaders, UpstreamResponseHead } from './upstream/upstream-response-parser.ts';

export interface TunnelOptions {
  request: Request;
  client: UpgradeClient;
  upstream: Upstream;
  url: ForwardedPath;
  policy: ProxyPolicy;
  head: UpstreamRequestHead;
  connections: UpstreamConnectionPool;
  deadlines: RequestDeadlines;
  limits: GatewayLimits;
}

/**
 * Forwards an upgrade request to a worker. If the worker agrees, the two connections are joined
 * until either side closes. If not, its response is sent back. Resolves when everything is over,
 * and to false if the worker could not be reached.
 */
export function tunnelUpgrade(options: TunnelOptions): Promise<boolean> {
  return new Promise((resolve) => {
    if (options.client.gone.aborted) return resolve(true);
    new UpgradeHandshake(options, resolve).start();
  });
}

class UpgradeHandshake implements UpstreamListener, DeadlineListener {
  readonly #options: TunnelOptions;
  readonly #resolve: (reached: boolean) => void;
  readonly #connection: UpstreamConnection;
  readonly #deadline: Deadline;
  #relay: ResponseRelay | undefined;
  #upgradeHead: UpstreamResponseHead | undefined;
  #reached = false;
  #finished = false;
  readonly #onClientClose = (): void => this.#finish(true);

  constructor(options: TunnelOptions, resolve: (reached: boolean) => void) {
    const { upstream, connections, deadlines } = options;
    this.#options = options;
    this.#resolve = resolve;
    this.#connection = connections.open(upstream.host, upstream.port);
    this.#deadline = deadlines.start(this);
  }

  start(): void {
    const { request, client, head } = this.#options;
    client.gone.addEventListener('abort', this.#onClientClose, { once: true });
    this.#connection.socket.write(head.text, 'latin1');
    this.#connection.begin(request.method ?? 'GET', this, true);
  }

  connected(): void {
    this.#reached = true;
  }

  drained(): void {
    // Only the head is written before the worker agrees.
  }

  head(head: UpstreamResponseHead): void {
    const { request, client, upstream, url, policy, limits } = this.#options;
    if (policy.deadlineEndsAt === 'head') this.#options.deadlines.clear(this.#deadline);
    if (head.status === 101) {
      this.#upgradeHead = head;
      return;
    }
    const response = client.createResponse(request);
    response.on('drain', () => this.#connection.socket.resume());
    response.on('close', this.#onClientClose);
    this.#relay = new ResponseRelay({
      response,
      workerId: policy.addsWorkerHeader ? upstream.id : undefined,
      policy,
      url,
      host: request.headers.host,
      method: request.method ?? 'GET',
      maxBodyBytes: limits.bodyBytes,
    });
    if (!this.#relay.head(head)) this.#finish(true);
  }

  data(chunk: Buffer): void {
    if (!this.#finished && this.#relay?.data(chunk) !== true) this.#finish(true);
  }

  end(trailers: RawHeaders): void {
    if (this.#finished) return;
    this.#relay?.end(trailers);
    this.#finish(true);
  }

  batchParsed(): void {
    if (!this.#finished && this.#relay?.flush() === false) this.#connection.socket.pause();
  }

  upgraded(far: Socket, rest: Buffer): void {
    const { request, client, upstream, policy } = this.#options;
    if (this.#finished || this.#upgradeHead === undefined) {
      far.destroy();
      return;
    }
    this.#finished = true;
    this.#stopListening();
    const early = client.detach();
    client.socket.write(
      upgradeResponseHead(
        this.#upgradeHead,
        policy.addsWorkerHeader ? upstream.id : undefined,
        requestIdOf(request),
      ),
      'latin1',
    );
    if (rest.length > 0) client.socket.write(rest);
    if (early.length > 0) far.write(early);
    // A WebSocket ends when one side ends; other protocols may use a half-closed connection.
    const halfOpen = request.headers.upgrade?.toLowerCase() !== 'websocket';
    void join(client.socket, far, halfOpen).then(() => this.#resolve(true));
  }

  broken(error: Error): void {
    if (this.#relay !== undefined) {
      this.#options.client.socket.destroy();
      this.#finish(true);
    } else if (this.#reached) this.#fail(badGateway(error.message, this.#options.policy));
    else this.#finish(false);
  }

  overdue(): void {
    this.#fail(upstreamTimeout(this.#options.deadlines.milliseconds, this.#options.policy));
  }

  #fail(error: GatewayError): void {
    if (this.#finished) return;
    this.#finish(true);
    if (this.#relay !== undefined) this.#options.client.socket.destroy();
    else
      sendGatewayError(
        this.#options.client.createResponse(this.#options.request),
        error,
        this.#options.policy.addsWorkerHeader ? this.#options.upstream.id : undefined,
      );
  }

  #finish(reached: boolean): void {
    if (this.#finished) return;
    this.#finished = true;
    this.#stopListening();
    this.#options.connections.release(this.#connection);
    this.#resolve(reached);
  }

  #stopListening(): void {
    this.#options.deadlines.clear(this.#deadline);
    this.#options.client.gone.removeEventListener('abort', this.#onClientClose);
  }
}

/** Joins two connections. Resolves when both are closed. */
async function join(near: Duplex, far: Socket, halfOpen: boolean): Promise<void> {
  keepSocketOpen(far);
  near.pipe(far);
  far.pipe(near);
  await Promise.all([closed(near, far, halfOpen), closed(far, near, halfOpen)]);
}

/** After a clean end the other side may finish writing; after an error it is closed at once. */
function closed(side: Duplex, other: Duplex, halfOpen: boolean): Promise<void> {
  return new Promise((resolve) => {
    const over = (): void => {
      if (side.readableEnded) endSoon(other);
      else other.destroy();
      resolve();
    };
    side.on('error', () => other.destroy());
    if (!halfOpen) {
      side.on('end', () => {
        endSoon(other);
        endSoon(side);
      });
    }
    if (side.destroyed) over();
    else side.on('close', over);
  });
}

/** Closes a connection once everything is written. */
function endSoon(socket: Duplex): void {
  if ('destroySoon' in socket && typeof socket.destroySoon === 'function') socket.destroySoon();
  else socket.end();
}
