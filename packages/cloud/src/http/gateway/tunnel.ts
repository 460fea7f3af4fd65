import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Request } from '../raw.ts';
import type { PassedPath } from './address.ts';
import type { Caller } from './caller.ts';
import { lasting } from './caller.ts';
import type { Deadline, Deadlines, Timed } from './deadlines.ts';
import { upgradeHead } from './headers.ts';
import type { RequestHead } from './headers.ts';
import type { GatewayLimits } from './limits.ts';
import type { Manner } from './manner.ts';
import type { BalancedWorker } from './pool.ts';
import { badGateway, overTime, refuse } from './refusals.ts';
import type { Refusal } from './refusals.ts';
import { Relay } from './relay.ts';
import type { Connection, ReplyListener } from './upstream/connection.ts';
import type { Connections } from './upstream/connections.ts';
import type { RawHeaders, ReplyHead } from './upstream/reply-parser.ts';

export interface TunnelParts {
  request: Request;
  caller: Caller;
  worker: BalancedWorker;
  address: PassedPath;
  manner: Manner;
  head: RequestHead;
  connections: Connections;
  deadlines: Deadlines;
  limits: GatewayLimits;
}

/**
 * Takes a request for another protocol to a worker. Where the worker agrees, the two
 * connections become one, whatever is spoken on it, until either side closes. Where it does
 * not, its answer goes back. Resolves when all is over; answers false where the worker could
 * not be reached.
 */
export function tunnel(parts: TunnelParts): Promise<boolean> {
  return new Promise((resolve) => {
    if (parts.caller.gone.aborted) return resolve(true);
    new Opening(parts, resolve).start();
  });
}

class Opening implements ReplyListener, Timed {
  readonly #parts: TunnelParts;
  readonly #resolve: (reached: boolean) => void;
  readonly #connection: Connection;
  readonly #deadline: Deadline;
  #relay: Relay | undefined;
  #agreed: ReplyHead | undefined;
  #reached = false;
  #over = false;
  readonly #onGone = (): void => this.#settle(true);

  constructor(parts: TunnelParts, resolve: (reached: boolean) => void) {
    const { worker, connections, deadlines } = parts;
    this.#parts = parts;
    this.#resolve = resolve;
    this.#connection = connections.open(worker.host, worker.port);
    this.#deadline = deadlines.begin(this);
  }

  start(): void {
    const { request, caller, head } = this.#parts;
    caller.gone.addEventListener('abort', this.#onGone, { once: true });
    this.#connection.socket.write(head.text, 'latin1');
    this.#connection.begin(request.method ?? 'GET', this, true);
  }

  connected(): void {
    this.#reached = true;
  }

  drained(): void {
    // Nothing but the head is written before the worker agrees.
  }

  head(head: ReplyHead): void {
    const { request, caller, worker, address, manner, limits } = this.#parts;
    if (manner.dueBy === 'head') this.#parts.deadlines.end(this.#deadline);
    if (head.status === 101) {
      this.#agreed = head;
      return;
    }
    const response = caller.answer(request);
    response.on('drain', () => this.#connection.socket.resume());
    response.on('close', this.#onGone);
    this.#relay = new Relay({
      response,
      workerId: manner.named ? worker.id : undefined,
      manner,
      address,
      host: request.headers.host,
      method: request.method ?? 'GET',
      bodyBytes: limits.bodyBytes,
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

  caughtUp(): void {
    if (!this.#over && this.#relay?.flush() === false) this.#connection.socket.pause();
  }

  upgraded(far: Socket, rest: Buffer): void {
    const { request, caller, worker, manner } = this.#parts;
    if (this.#over || this.#agreed === undefined) {
      far.destroy();
      return;
    }
    this.#over = true;
    this.#stopListening();
    const early = caller.take();
    caller.socket.write(upgradeHead(this.#agreed, manner.named ? worker.id : undefined), 'latin1');
    if (rest.length > 0) caller.socket.write(rest);
    if (early.length > 0) far.write(early);
    // Where one side of a WebSocket has ended, all has: unlike other protocols it has no use for half a connection.
    const halfOpen = request.headers.upgrade?.toLowerCase() !== 'websocket';
    void join(caller.socket, far, halfOpen).then(() => this.#resolve(true));
  }

  broken(error: Error): void {
    if (this.#relay !== undefined) {
      this.#parts.caller.socket.destroy();
      this.#settle(true);
    } else if (this.#reached) this.#fail(badGateway(error.message, this.#parts.manner));
    else this.#settle(false);
  }

  overdue(): void {
    this.#fail(overTime(this.#parts.deadlines.milliseconds, this.#parts.manner));
  }

  #fail(refusal: Refusal): void {
    if (this.#over) return;
    this.#settle(true);
    if (this.#relay !== undefined) this.#parts.caller.socket.destroy();
    else
      refuse(
        this.#parts.caller.answer(this.#parts.request),
        refusal,
        this.#parts.manner.named ? this.#parts.worker.id : undefined,
      );
  }

  #settle(reached: boolean): void {
    if (this.#over) return;
    this.#over = true;
    this.#stopListening();
    this.#parts.connections.free(this.#connection);
    this.#resolve(reached);
  }

  #stopListening(): void {
    this.#parts.deadlines.end(this.#deadline);
    this.#parts.caller.gone.removeEventListener('abort', this.#onGone);
  }
}

/** Makes one connection of two. Resolves when both are closed. */
async function join(near: Duplex, far: Socket, halfOpen: boolean): Promise<void> {
  lasting(far);
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
