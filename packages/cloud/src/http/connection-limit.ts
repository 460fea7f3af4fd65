import { readFileSync } from 'node:fs';
import type { ServerOptions } from 'node:http';
import type { Socket } from 'node:net';
import { Server } from '../support/node-http.ts';
import type { Log } from '../support/log.ts';
import type { TlsAcceptor } from './tls/tls-acceptor.ts';
import { throttle } from '../support/throttle.ts';

/**
 * The part of the descriptors that clients may have; the rest is for files, the database, workers and
 * instances.
 */
const CLIENT_SHARE = 0.6;
/** Where the system does not tell its limit. */
const DEFAULT_DESCRIPTORS = 1024;
const LOG_INTERVAL_MS = 10_000;

const BODY = JSON.stringify({ error: 'this server has no room for another connection; try again' });
const REFUSAL = `HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(BODY)}\r\n\r\n${BODY}`;

/** How many connections of clients fit into the limit of open files. */
export function defaultMaxConnections(limits = readLimits()): number {
  const soft = /^Max open files\s+(\d+)/m.exec(limits)?.[1];
  return Math.max(16, Math.floor((soft === undefined ? DEFAULT_DESCRIPTORS : Number(soft)) * CLIENT_SHARE));
}

function readLimits(): string {
  try {
    return readFileSync('/proc/self/limits', 'utf8');
  } catch {
    return '';
  }
}

/**
 * Counts the connections of clients. Beyond the limit a connection is answered and closed: without descriptors it could not
 * even be told why, and files could not be opened either.
 */
export class ConnectionLimit {
  readonly max: number;
  readonly #report: () => void;
  #open = 0;
  #refused = 0;

  constructor(max: number, log: Pick<Log, 'warn'>) {
    this.max = max;
    this.#report = throttle(async () => {
      log.warn(
        { open: this.#open, refused: this.#refused, maxConnections: max },
        'connections were refused: as many are open as maxConnections allows; raise it, and the limit of open files (ulimit -n, LimitNOFILE)',
      );
      this.#refused = 0;
    }, LOG_INTERVAL_MS);
  }

  get open(): number {
    return this.#open;
  }

  /** False if the connection was refused. */
  admit(socket: Socket): boolean {
    if (this.#open >= this.max) {
      this.#refused += 1;
      this.#report();
      // What the client has sent is read, or the answer would be lost with a reset.
      socket.on('error', () => socket.destroy()).resume();
      socket.end(REFUSAL, () => socket.destroySoon());
      return false;
    }
    this.#open += 1;
    socket.once('close', () => (this.#open -= 1));
    return true;
  }
}

/** Node's HTTP server with such a limit, and with HTTPS on the same port if an acceptor is given. */
export class ConnectionLimitedServer extends Server {
  readonly #limit: ConnectionLimit;
  readonly #tls: TlsAcceptor | undefined;

  constructor(options: ServerOptions, limit: ConnectionLimit, tls?: TlsAcceptor) {
    super(options);
    this.#limit = limit;
    this.#tls = tls;
    tls?.attach((socket) => super.emit('connection', socket));
  }

  override emit(event: string, ...values: unknown[]): boolean {
    if (event !== 'connection') return super.emit(event, ...values);
    const socket = values[0] as Socket;
    if (!this.#limit.admit(socket)) return true;
    if (this.#tls === undefined) return super.emit(event, socket);
    this.#tls.accept(socket);
    return true;
  }

  override closeIdleConnections(): void {
    super.closeIdleConnections();
    this.#tls?.closePending();
  }

  override closeAllConnections(): void {
    super.closeAllConnections();
    this.#tls?.closePending();
  }
}
