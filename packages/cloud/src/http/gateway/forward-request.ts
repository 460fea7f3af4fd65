import type { Socket } from 'node:net';
import type { BerthError } from '../../support/errors.ts';
import type { Request, Response } from '../raw-http.ts';
import type { ForwardedPath } from './gateway-url.ts';
import { RequestBodySender } from './request-body-sender.ts';
import type { Deadline, RequestDeadlines, DeadlineListener } from './request-deadlines.ts';
import type { UpstreamRequestHead } from './gateway-headers.ts';
import type { GatewayLimits } from './gateway-limits.ts';
import type { ProxyPolicy } from './proxy-policy.ts';
import type { Upstream } from '../../domain/endpoints/worker-pool.ts';
import {
  badGateway,
  discardBody,
  upstreamTimeout,
  sendGatewayError,
  requestTooLarge,
} from './gateway.errors.ts';
import type { GatewayError } from './gateway.errors.ts';
import { ResponseRelay } from './response-relay.ts';
import type { UpstreamConnection, UpstreamListener } from './upstream/upstream-connection.ts';
import type { UpstreamConnectionPool } from './upstream/upstream-connection-pool.ts';
import type { RawHeaders, UpstreamResponseHead } from './upstream/upstream-response-parser.ts';

export interface ForwardOptions {
  request: Request;
  response: Response;
  upstream: Upstream;
  url: ForwardedPath;
  policy: ProxyPolicy;
  head: UpstreamRequestHead;
  /** The body, where it was here whole before a worker was chosen; undefined where it is still to come. */
  body: Buffer | undefined;
  connections: UpstreamConnectionPool;
  deadlines: RequestDeadlines;
  limits: GatewayLimits;
  /** The client waits for `100 Continue` before it sends its body. */
  expectsContinue: boolean;
}

/**
 * Takes one request to a worker and its answer back, both as they come: nothing is kept here
 * but what is on its way. Resolves when it is over: answered, refused or cut off. Answers
 * false where the worker could not be reached: then nothing of the request has left, and it
 * may go to another.
 */
export function forwardRequest(parts: ForwardOptions): Promise<boolean> {
  return new Promise((resolve) => {
    if (parts.response.destroyed) return resolve(true);
    new ForwardedExchange(parts, resolve).start();
  });
}

class ForwardedExchange implements UpstreamListener, DeadlineListener {
  readonly #parts: ForwardOptions;
  readonly #resolve: (reached: boolean) => void;
  readonly #connection: UpstreamConnection;
  #deadline: Deadline;
  readonly #relay: ResponseRelay;
  #body: RequestBodySender | undefined;
  #reached = false;
  #over = false;
  readonly #onGone = (): void => this.#settle(true);
  #onDrain: (() => void) | undefined;

  constructor(parts: ForwardOptions, resolve: (reached: boolean) => void) {
    const { request, response, upstream, url, policy, connections, limits } = parts;
    this.#parts = parts;
    this.#resolve = resolve;
    this.#connection = connections.acquire(upstream.host, upstream.port);
    this.#relay = new ResponseRelay({
      response,
      workerId: policy.addsWorkerHeader ? upstream.id : undefined,
      policy,
      url,
      host: request.headers.host,
      method: request.method ?? 'GET',
      maxBodyBytes: limits.bodyBytes,
    });
    this.#deadline = parts.deadlines.start(this);
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
    const { request, response, head, body, limits, expectsContinue } = this.#parts;
    if (head.length === 0 || body !== undefined) return;
    this.#body = new RequestBodySender(request, this.#connection.socket, {
      length: head.length,
      limit: limits.bodyBytes,
      tooLarge: () => this.#fail(requestTooLarge(limits.bodyBytes)),
      sent: () => this.#awaitHead(),
    });
    this.#body.start();
    if (expectsContinue) response.writeContinue();
  }

  drained(): void {
    this.#body?.resume();
  }

  head(head: UpstreamResponseHead): void {
    if (this.#parts.policy.deadlineEndsAt === 'head') this.#parts.deadlines.clear(this.#deadline);
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

  batchParsed(): void {
    if (!this.#over && !this.#relay.flush()) this.#slowDown();
  }

  upgraded(socket: Socket): void {
    socket.destroy();
  }

  broken(error: Error): void {
    if (this.#reached) this.#fail(badGateway(error.message, this.#parts.policy));
    else this.#settle(false);
  }

  overdue(): void {
    const { policy, deadlines } = this.#parts;
    // A long upload is no silence.
    if (policy.deadlineEndsAt === 'head' && this.#body?.done === false)
      this.#deadline = deadlines.start(this);
    else this.#fail(upstreamTimeout(deadlines.milliseconds, policy));
  }

  /** Where only the head is due, the time for it begins when all was sent. It may have come before. */
  #awaitHead(): void {
    const { policy, deadlines } = this.#parts;
    if (policy.deadlineEndsAt !== 'head' || this.#deadline.listener === undefined) return;
    deadlines.clear(this.#deadline);
    this.#deadline = deadlines.start(this);
  }

  /** Where the answer has begun, this cuts it off. */
  #fail(refusal: GatewayError | BerthError): void {
    if (this.#over) return;
    this.#settle(true);
    sendGatewayError(
      this.#parts.response,
      refusal,
      this.#parts.policy.addsWorkerHeader ? this.#parts.upstream.id : undefined,
    );
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
    deadlines.clear(this.#deadline);
    const sent = head.length === 0 || body !== undefined || this.#body?.done === true;
    if (sent) connections.release(this.#connection);
    else this.#connection.destroy();
    if (!sent && reached) {
      // Whoever answers before it has read everything does not want the rest.
      this.#body?.stop();
      discardBody(request);
    }
    this.#resolve(reached);
  }
}
