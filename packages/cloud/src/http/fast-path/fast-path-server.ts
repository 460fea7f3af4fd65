import { Server } from 'node:http';
import type { ServerOptions } from 'node:http';
import type { Socket } from 'node:net';
import type { ConnectionLimit } from '../connection-limit.ts';
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
  readonly #connections = new Set<FastPathConnection>();
  readonly #timeoutCheck: NodeJS.Timeout;

  constructor(options: ServerOptions, handler: FastPathHandler, limit?: ConnectionLimit) {
    super(options);
    this.#limit = limit;
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
    if (this.#limit?.admit(values[0] as Socket) === false) return true;
    this.#connections.add(
      new FastPathConnection({
        socket: values[0] as Socket,
        handler: this.#handler,
        passToNode: (socket) => super.emit('connection', socket),
        rejectTruncated: (socket) => this.#rejectTruncated(socket),
        onClose: (connection) => this.#connections.delete(connection),
      }),
    );
    return true;
  }

  /** `close()` calls this too. Busy connections end after their response. */
  override closeIdleConnections(): void {
    super.closeIdleConnections();
    for (const connection of this.#connections) if (connection.idle) connection.end();
  }

  override closeAllConnections(): void {
    super.closeAllConnections();
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
