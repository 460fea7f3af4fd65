import { isSharedWithConsole } from './page-isolation.ts';
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
  /** The body, if it had arrived whole before a worker was chosen. */
  body: Buffer | undefined;
  connections: UpstreamConnectionPool;
  deadlines: RequestDeadlines;
  limits: GatewayLimits;
  /** The client waits for `100 Continue` before it sends its body. */
  expectsContinue: boolean;
}

/**
 * Forwards one request to a worker and streams its response back; nothing is buffered beyond what
 * is in transit. Resolves when the exchange is over: answered, rejected or aborted. Resolves to
 * false if the worker could not be reached: then nothing of the request was sent, and another
 * worker may get it.
 */
export function forwardRequest(options: ForwardOptions): Promise<boolean> {
  return new Promise((resolve) => {
    if (options.response.destroyed) return resolve(true);
    new ForwardedExchange(options, resolve).start();
  });
}

class ForwardedExchange implements UpstreamListener, DeadlineListener {
  readonly #options: ForwardOptions;
  readonly #resolve: (reached: boolean) => void;
  readonly #connection: UpstreamConnection;
  #deadline: Deadline;
  readonly #relay: ResponseRelay;
  #body: RequestBodySender | undefined;
  #reached = false;
  #finished = false;
  readonly #onClientClose = (): void => this.#finish(true);
  #onDrain: (() => void) | undefined;

  constructor(options: ForwardOptions, resolve: (reached: boolean) => void) {
    const { request, response, upstream, url, policy, connections, limits } = options;
    this.#options = options;
    this.#resolve = resolve;
    this.#connection = connections.acquire(upstream.host, upstream.port);
    this.#relay = new ResponseRelay({
      response,
      workerId: policy.addsWorkerHeader ? upstream.id : undefined,
      policy,
      url,
      isolated: isSharedWithConsole(request, url),
      host: request.headers.host,
      method: request.method ?? 'GET',
      maxBodyBytes: limits.bodyBytes,
    });
    this.#deadline = options.deadlines.start(this);
  }

  start(): void {
    const { request, response, head, body } = this.#options;
    response.on('close', this.#onClientClose);
    const { socket } = this.#connection;
    // The head and the part of the body that has arrived leave in one packet.
    const hasMoreBody = head.length !== 0 && body === undefined;
    if (hasMoreBody) socket.cork();
    socket.write(body === undefined ? head.text : head.text + body.toString('latin1'), 'latin1');
    this.#connection.begin(request.method ?? 'GET', this);
    if (hasMoreBody) process.nextTick(() => socket.uncork());
  }

  connected(): void {
    this.#reached = true;
    const { request, response, head, body, limits, expectsContinue } = this.#options;
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
    if (this.#options.policy.deadlineEndsAt === 'head') this.#options.deadlines.clear(this.#deadline);
    if (!this.#finished && !this.#relay.head(head)) this.#finish(true);
  }

  data(chunk: Buffer): void {
    if (!this.#finished && !this.#relay.data(chunk)) this.#finish(true);
  }

  end(trailers: RawHeaders): void {
    if (this.#finished) return;
    this.#relay.end(trailers);
    this.#finish(true);
  }

  batchParsed(): void {
    if (!this.#finished && !this.#relay.flush()) this.#pauseUpstream();
  }

  upgraded(socket: Socket): void {
    socket.destroy();
  }

  broken(error: Error): void {
    if (this.#reached) this.#fail(badGateway(error.message, this.#options.policy));
    else this.#finish(false);
  }

  overdue(): void {
    const { policy, deadlines } = this.#options;
    // A long upload is not a timeout.
    if (policy.deadlineEndsAt === 'head' && this.#body?.done === false)
      this.#deadline = deadlines.start(this);
    else this.#fail(upstreamTimeout(deadlines.milliseconds, policy));
  }

  /**
   * If only the head has a deadline, its time begins when the request is sent. The head may have arrived
   * before.
   */
  #awaitHead(): void {
    const { policy, deadlines } = this.#options;
    if (policy.deadlineEndsAt !== 'head' || this.#deadline.listener === undefined) return;
    deadlines.clear(this.#deadline);
    this.#deadline = deadlines.start(this);
  }

  /** If the response has begun, it is aborted. */
  #fail(error: GatewayError | BerthError): void {
    if (this.#finished) return;
    this.#finish(true);
    sendGatewayError(
      this.#options.response,
      error,
      this.#options.policy.addsWorkerHeader ? this.#options.upstream.id : undefined,
    );
  }

  /** The client reads more slowly than the worker writes. */
  #pauseUpstream(): void {
    const { socket } = this.#connection;
    socket.pause();
    this.#onDrain ??= () => void (this.#finished || socket.resume());
    this.#options.response.once('drain', this.#onDrain);
  }

  #finish(reached: boolean): void {
    if (this.#finished) return;
    this.#finished = true;
    const { request, response, head, body, connections, deadlines } = this.#options;
    // Several workers may be tried for one response.
    if (!reached) response.off('close', this.#onClientClose);
    deadlines.clear(this.#deadline);
    const sent = head.length === 0 || body !== undefined || this.#body?.done === true;
    if (sent) connections.release(this.#connection);
    else this.#connection.destroy();
    if (!sent && reached) {
      // A worker that answers before it has read the whole body does not want the rest.
      this.#body?.stop();
      discardBody(request);
    }
    this.#resolve(reached);
  }
}
