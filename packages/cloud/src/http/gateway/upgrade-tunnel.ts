import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Request } from '../raw-http.ts';
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
 * Takes a request for another protocol to a worker. Where the worker agrees, the two
 * connections become one, whatever is spoken on it, until either side closes. Where it does
 * not, its answer goes back. Resolves when all is over; answers false where the worker could
 * not be reached.
 */
export function tunnelUpgrade(parts: TunnelOptions): Promise<boolean> {
  return new Promise((resolve) => {
    if (parts.client.gone.aborted) return resolve(true);
    new UpgradeHandshake(parts, resolve).start();
  });
}

class UpgradeHandshake implements UpstreamListener, DeadlineListener {
  readonly #parts: TunnelOptions;
  readonly #resolve: (reached: boolean) => void;
  readonly #connection: UpstreamConnection;
  readonly #deadline: Deadline;
  #relay: ResponseRelay | undefined;
  #agreed: UpstreamResponseHead | undefined;
  #reached = false;
  #over = false;
  readonly #onGone = (): void => this.#settle(true);

  constructor(parts: TunnelOptions, resolve: (reached: boolean) => void) {
    const { upstream, connections, deadlines } = parts;
    this.#parts = parts;
    this.#resolve = resolve;
    this.#connection = connections.open(upstream.host, upstream.port);
    this.#deadline = deadlines.start(this);
  }

  start(): void {
    const { request, client, head } = this.#parts;
    client.gone.addEventListener('abort', this.#onGone, { once: true });
    this.#connection.socket.write(head.text, 'latin1');
    this.#connection.begin(request.method ?? 'GET', this, true);
  }

  connected(): void {
    this.#reached = true;
  }

  drained(): void {
    // Nothing but the head is written before the worker agrees.
  }

  head(head: UpstreamResponseHead): void {
    const { request, client, upstream, url, policy, limits } = this.#parts;
    if (policy.deadlineEndsAt === 'head') this.#parts.deadlines.clear(this.#deadline);
    if (head.status === 101) {
      this.#agreed = head;
      return;
    }
    const response = client.createResponse(request);
    response.on('drain', () => this.#connection.socket.resume());
    response.on('close', this.#onGone);
    this.#relay = new ResponseRelay({
      response,
      workerId: policy.addsWorkerHeader ? upstream.id : undefined,
      policy,
      url,
      host: request.headers.host,
      method: request.method ?? 'GET',
      maxBodyBytes: limits.bodyBytes,
    });
    if (!this.#relay.head(head)) this.#settle(true);
  }

  data(chunk: Buffer): void {
    if (!this.#over && this.#relay?.data(chunk) !== true) this.#settle(true);
  }

  end(trailers: RawHeaders): void {
    if (this.#over) return;
    this.#relay?.end(trailers);
    this.#settle(true);
  }

  batchParsed(): void {
    if (!this.#over && this.#relay?.flush() === false) this.#connection.socket.pause();
  }

  upgraded(far: Socket, rest: Buffer): void {
    const { request, client, upstream, policy } = this.#parts;
    if (this.#over || this.#agreed === undefined) {
      far.destroy();
      return;
    }
    this.#over = true;
    this.#stopListening();
    const early = client.detach();
    client.socket.write(
      upgradeResponseHead(this.#agreed, policy.addsWorkerHeader ? upstream.id : undefined),
      'latin1',
    );
    if (rest.length > 0) client.socket.write(rest);
    if (early.length > 0) far.write(early);
    // Where one side of a WebSocket has ended, all has: unlike other protocols it has no use for half a connection.
    const halfOpen = request.headers.upgrade?.toLowerCase() !== 'websocket';
    void join(client.socket, far, halfOpen).then(() => this.#resolve(true));
  }

  broken(error: Error): void {
    if (this.#relay !== undefined) {
      this.#parts.client.socket.destroy();
      this.#settle(true);
    } else if (this.#reached) this.#fail(badGateway(error.message, this.#parts.policy));
    else this.#settle(false);
  }

  overdue(): void {
    this.#fail(upstreamTimeout(this.#parts.deadlines.milliseconds, this.#parts.policy));
  }

  #fail(refusal: GatewayError): void {
    if (this.#over) return;
    this.#settle(true);
    if (this.#relay !== undefined) this.#parts.client.socket.destroy();
    else
      sendGatewayError(
        this.#parts.client.createResponse(this.#parts.request),
        refusal,
        this.#parts.policy.addsWorkerHeader ? this.#parts.upstream.id : undefined,
      );
  }

  #settle(reached: boolean): void {
    if (this.#over) return;
    this.#over = true;
    this.#stopListening();
    this.#parts.connections.release(this.#connection);
    this.#resolve(reached);
  }

  #stopListening(): void {
    this.#parts.deadlines.clear(this.#deadline);
    this.#parts.client.gone.removeEventListener('abort', this.#onGone);
  }
}

/** Makes one connection of two. Resolves when both are closed. */
async function join(near: Duplex, far: Socket, halfOpen: boolean): Promise<void> {
  keepSocketOpen(far);
  near.pipe(far);
  far.pipe(near);
  await Promise.all([closed(near, far, halfOpen), closed(far, near, halfOpen)]);
}

/** What ended well lets the other side finish writing; what broke takes the other down with it. */
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

/** Closes a connection once all that was written has left. */
function endSoon(socket: Duplex): void {
  if ('destroySoon' in socket && typeof socket.destroySoon === 'function') socket.destroySoon();
  else socket.end();
}
