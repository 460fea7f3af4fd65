import type { ServerOptions } from 'node:http';
import type { Socket } from 'node:net';
import { Server } from '../../support/node-http.ts';
import type { ConnectionLimit } from '../connection-limit.ts';
import type { TlsAcceptor } from '../tls/tls-acceptor.ts';
import { FastPathConnection } from './fast-path-connection.ts';
import type { FastPathHandler } from './fast-path-connection.ts';

const TIMEOUT_CHECK_MS = 5_000;

/**
 * Node's HTTP server with the fast path in front of it. A new connection goes to the fast path
 * first. The first request that is not small and plain goes to Node with its connection: the bytes
 * read so far are put back, and the `connection` event, which Node documents for this, is emitted.
 */
export class FastPathServer extends Server {
  readonly #handler: FastPathHandler;
  readonly #limit: ConnectionLimit | undefined;
  readonly #tls: TlsAcceptor | undefined;
  readonly #connections = new Set<FastPathConnection>();
  readonly #timeoutCheck: NodeJS.Timeout;

  constructor(options: ServerOptions, handler: FastPathHandler, limit?: ConnectionLimit, tls?: TlsAcceptor) {
    super(options);
    this.#limit = limit;
    this.#tls = tls;
    tls?.attach((socket) => this.#serve(socket));
    this.#handler = handler;
    this.#timeoutCheck = setInterval(() => {
      // A monotonic clock: a system clock that is set forward must not close every connection.
      const now = performance.now();
      for (const connection of this.#connections) connection.checkTimeout(now);
    }, TIMEOUT_CHECK_MS).unref();
    this.once('close', () => clearInterval(this.#timeoutCheck));
  }

  override emit(event: string, ...values: unknown[]): boolean {
    if (event !== 'connection') return super.emit(event, ...values);
    const socket = values[0] as Socket;
    if (this.#limit?.admit(socket) === false) return true;
    if (this.#tls === undefined) this.#serve(socket);
    else this.#tls.accept(socket);
    return true;
  }

  #serve(socket: Socket): void {
    this.#connections.add(
      new FastPathConnection({
        socket,
        handler: this.#handler,
        passToNode: () => super.emit('connection', socket),
        rejectTruncated: () => this.#rejectTruncated(socket),
        onClose: (connection) => this.#connections.delete(connection),
      }),
    );
  }

  /** `close()` calls this too. Busy connections end after their response. */
  override closeIdleConnections(): void {
    super.closeIdleConnections();
    this.#tls?.closePending();
    for (const connection of this.#connections) if (connection.idle) connection.end();
  }

  override closeAllConnections(): void {
    super.closeAllConnections();
    this.#tls?.closePending();
    for (const connection of this.#connections) connection.destroy();
  }

  /** As Node does where a connection ends in the middle of a request. */
  #rejectTruncated(socket: Socket): void {
    const error = Object.assign(new Error('Parse Error: Invalid EOF state'), {
      code: 'HPE_INVALID_EOF_STATE',
    });
    if (!super.emit('clientError', error, socket))
      socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n');
  }
}
