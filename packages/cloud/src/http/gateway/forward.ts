import type { Socket } from 'node:net';
import type { BerthError } from '../../support/errors.ts';
import type { Request, Response } from '../raw.ts';
import type { PassedPath } from './address.ts';
import { BodySender } from './body.ts';
import type { Deadline, Deadlines, Timed } from './deadlines.ts';
import type { RequestHead } from './headers.ts';
import type { GatewayLimits } from './limits.ts';
import type { Manner } from './manner.ts';
import type { BalancedWorker } from './pool.ts';
import { badGateway, dropRest, overTime, refuse, requestTooLarge } from './refusals.ts';
import type { Refusal } from './refusals.ts';
import { Relay } from './relay.ts';
import type { Connection, ReplyListener } from './upstream/connection.ts';
import type { Connections } from './upstream/connections.ts';
import type { RawHeaders, ReplyHead } from './upstream/reply-parser.ts';

export interface ExchangeParts {
  request: Request;
  response: Response;
  worker: BalancedWorker;
  address: PassedPath;
  manner: Manner;
  head: RequestHead;
  /** The body, where it was here whole before a worker was chosen; undefined where it is still to come. */
  body: Buffer | undefined;
  connections: Connections;
  deadlines: Deadlines;
  limits: GatewayLimits;
  /** The client waits for `100 Continue` before it sends its body. */
  waitsToContinue: boolean;
}

/**
 * Takes one request to a worker and its answer back, both as they come: nothing is kept here
 * but what is on its way. Resolves when it is over: answered, refused or cut off. Answers
 * false where the worker could not be reached: then nothing of the request has left, and it
 * may go to another.
 */
export function forward(parts: ExchangeParts): Promise<boolean> {
  return new Promise((resolve) => {
    if (parts.response.destroyed) return resolve(true);
    new Exchange(parts, resolve).start();
  });
}

class Exchange implements ReplyListener, Timed {
  readonly #parts: ExchangeParts;
  readonly #resolve: (reached: boolean) => void;
  readonly #connection: Connection;
  #deadline: Deadline;
  readonly #relay: Relay;
  #body: BodySender | undefined;
  #reached = false;
  #over = false;
  readonly #onGone = (): void => this.#settle(true);
  #onDrain: (() => void) | undefined;

  constructor(parts: ExchangeParts, resolve: (reached: boolean) => void) {
    const { request, response, worker, address, manner, connections, limits } = parts;
    this.#parts = parts;
    this.#resolve = resolve;
    this.#connection = connections.take(worker.host, worker.port);
    this.#relay = new Relay({
      response,
      workerId: manner.named ? worker.id : undefined,
      manner,
      address,
      host: request.headers.host,
      method: request.method ?? 'GET',
      bodyBytes: limits.bodyBytes,
    });
    this.#deadline = parts.deadlines.begin(this);
  }

  start(): void {
    const { request, response, head, body } = this.#parts;
    response.on('close', this.#onGone);
    const { socket } = this.#connection;
    // The head and the part of the body that is here already leave as one.
    const follows = head.length !== 0 && body === undefined;
    if (follows) socket.cork();
    socket.write(body === undefined ? head.text : head.text + body.toString('latin1'), 'latin1');
    this.#connection.begin(request.method ?? 'GET', this);
    if (follows) process.nextTick(() => socket.uncork());
  }

  connected(): void {
    this.#reached = true;
    const { request, response, head, body, limits, waitsToContinue } = this.#parts;
    if (head.length === 0 || body !== undefined) return;
    this.#body = new BodySender(request, this.#connection.socket, {
      length: head.length,
      limit: limits.bodyBytes,
      tooLarge: () => this.#fail(requestTooLarge(limits.bodyBytes)),
      sent: () => this.#awaitHead(),
    });
    this.#body.start();
    if (waitsToContinue) response.writeContinue();
  }

  drained(): void {
    this.#body?.resume();
  }

  head(head: ReplyHead): void {
    if (this.#parts.manner.dueBy === 'head') this.#parts.deadlines.end(this.#deadline);
    if (!this.#over && !this.#relay.head(head)) this.#settle(true);
  }

  data(chunk: Buffer): void {
    if (!this.#over && !this.#relay.data(chunk)) this.#settle(true);
  }

  end(trailers: RawHeaders): void {
    if (this.#over) return;
    this.#relay.end(trailers);
    this.#settle(true);
  }

  caughtUp(): void {
    if (!this.#over && !this.#relay.flush()) this.#slowDown();
  }

  upgraded(socket: Socket): void {
    socket.destroy();
  }

  broken(error: Error): void {
    if (this.#reached) this.#fail(badGateway(error.message, this.#parts.manner));
    else this.#settle(false);
  }

  overdue(): void {
    const { manner, deadlines } = this.#parts;
    // A long upload is no silence.
    if (manner.dueBy === 'head' && this.#body?.done === false) this.#deadline = deadlines.begin(this);
    else this.#fail(overTime(deadlines.milliseconds, manner));
  }

  /** Where only the head is due, the time for it begins when all was sent. It may have come before. */
  #awaitHead(): void {
    const { manner, deadlines } = this.#parts;
    if (manner.dueBy !== 'head' || this.#deadline.timed === undefined) return;
    deadlines.end(this.#deadline);
    this.#deadline = deadlines.begin(this);
  }

  /** Where the answer has begun, this cuts it off. */
  #fail(refusal: Refusal | BerthError): void {
    if (this.#over) return;
    this.#settle(true);
    refuse(this.#parts.response, refusal, this.#parts.manner.named ? this.#parts.worker.id : undefined);
  }

  /** The client reads more slowly than the worker writes. */
  #slowDown(): void {
    const { socket } = this.#connection;
    socket.pause();
    this.#onDrain ??= () => void (this.#over || socket.resume());
    this.#parts.response.once('drain', this.#onDrain);
  }

  #settle(reached: boolean): void {
    if (this.#over) return;
    this.#over = true;
    const { request, response, head, body, connections, deadlines } = this.#parts;
    // Many workers may be tried for one response.
    if (!reached) response.off('close', this.#onGone);
    deadlines.end(this.#deadline);
    const sent = head.length === 0 || body !== undefined || this.#body?.done === true;
    if (sent) connections.free(this.#connection);
    else this.#connection.destroy();
    if (!sent && reached) {
      // Whoever answers before it has read everything does not want the rest.
      this.#body?.stop();
      dropRest(request);
    }
    this.#resolve(reached);
  }
}
