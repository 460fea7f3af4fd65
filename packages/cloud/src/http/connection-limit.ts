import { readFileSync } from 'node:fs';
import type { ServerOptions } from 'node:http';
import type { Socket } from 'node:net';
import { ROOT_ACCOUNT_ID } from '../domain/caller.ts';
import { BerthError } from '../support/errors.ts';
import { Server, STATUS_CODES } from '../support/node-http.ts';
import type { Log } from '../support/log.ts';
import type { TlsAcceptor } from './tls/tls-acceptor.ts';
import { throttle } from '../support/throttle.ts';

/**
 * The part of the descriptors that clients may have; the rest is for files, the database, workers and
 * instances.
 */
const CLIENT_SHARE = 0.6;
/** Where the system does not report its limit. */
const DEFAULT_DESCRIPTORS = 1024;
const LOG_INTERVAL_MS = 10_000;

/** The part of the connections that one account gets, and those from one address that have shown no key. */
const ACCOUNT_SHARE = 0.5;
const ANONYMOUS_SHARE = 0.25;
const MIN_ANONYMOUS = 16;
/** When all connections are taken, one that has shown no key for so long makes room. */
const ANONYMOUS_MS = 10_000;
/** A connection over the limit of its account is closed after its answer. */
const REFUSED_MS = 1_000;

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

export interface ConnectionLimits {
  /** Connections at a time. */
  max: number;
  /** Of one account; the root account has no limit. 0: half of them. */
  maxPerAccount?: number;
  /** Called with each request of an account. Throws if the account has sent too many. */
  countRequest?(accountId: string): void;
  /** Milliseconds that only advance. */
  now?(): number;
}

/** A connection, and the account that last authenticated on it. */
interface Connection {
  readonly limit: ConnectionLimit;
  readonly socket: Socket;
  readonly address: string;
  readonly openedAt: number;
  account: string | undefined;
}

/** By its socket; over TLS, the socket of the connection and the one that is encrypted are two. */
const connections = new WeakMap<object, Connection>();
const connectionsByPeer = new Map<string, Connection>();

/**
 * The connection belongs to this account from now on. Throws if the account has as many as one may have; then
 * the connection is closed soon after the answer. A connection that no limit counts is left alone.
 */
export function claimConnection(socket: object, accountId: string): void {
  const connection = connections.get(socket) ?? findByPeer(socket);
  if (connection !== undefined && connection.account !== accountId)
    connection.limit.claim(connection, accountId);
}

/** The same for a request of a client, which is counted too. Throws if the account has sent too many. */
export function admitRequest(socket: object, accountId: string): void {
  const connection = connections.get(socket) ?? findByPeer(socket);
  if (connection === undefined) return;
  if (connection.account !== accountId) connection.limit.claim(connection, accountId);
  connection.limit.countRequest?.(accountId);
}

/** The account that last showed a key on this connection. */
export function accountOf(socket: object): string | undefined {
  return (connections.get(socket) ?? findByPeer(socket))?.account;
}

function findByPeer(socket: object): Connection | undefined {
  const connection = connectionsByPeer.get(peerOf(socket as Socket) ?? '');
  if (connection !== undefined) connections.set(socket, connection);
  return connection;
}

function peerOf({ remoteAddress, remotePort, localPort }: Socket): string | undefined {
  return remotePort === undefined ? undefined : `${remoteAddress} ${remotePort} ${localPort}`;
}

/**
 * Counts the connections of clients. Beyond the limit a connection is answered and closed: without
 * descriptors it could not even be answered, and files could not be opened either. No account can take the
 * last one from the others, and neither can somebody without a key.
 */
export class ConnectionLimit {
  readonly max: number;
  readonly maxPerAccount: number;
  readonly maxAnonymousPerAddress: number;
  readonly countRequest: ((accountId: string) => void) | undefined;
  readonly #now: () => number;
  readonly #report: () => void;
  /** Those that have shown no key, the oldest first. */
  readonly #anonymous = new Set<Connection>();
  readonly #byAddress = new Map<string, number>();
  readonly #byAccount = new Map<string, number>();
  #open = 0;
  #refused = 0;

  constructor({ max, maxPerAccount = 0, countRequest, now }: ConnectionLimits, log: Pick<Log, 'warn'>) {
    this.max = max;
    this.maxPerAccount = maxPerAccount === 0 ? Math.ceil(max * ACCOUNT_SHARE) : maxPerAccount;
    this.maxAnonymousPerAddress = Math.max(MIN_ANONYMOUS, Math.ceil(max * ANONYMOUS_SHARE));
    this.countRequest = countRequest;
    this.#now = now ?? (() => performance.now());
    this.#report = throttle(async () => {
      log.warn(
        { open: this.#open, refused: this.#refused, maxConnections: max },
        'connections were refused: as many are open as maxConnections allows; raise it, and the limit ' +
          'of open files (ulimit -n, LimitNOFILE)',
      );
      this.#refused = 0;
    }, LOG_INTERVAL_MS);
  }

  get open(): number {
    return this.#open;
  }

  /** The connections of an account. */
  openOf(accountId: string): number {
    return this.#byAccount.get(accountId) ?? 0;
  }

  /** False if the connection was refused. */
  admit(socket: Socket): boolean {
    const address = socket.remoteAddress ?? '';
    if (this.#open >= this.max && !this.#makeRoom()) {
      this.#refused += 1;
      this.#report();
      return refuse(socket, 503, 'this server has reached its limit of connections; try again');
    }
    if ((this.#byAddress.get(address) ?? 0) >= this.maxAnonymousPerAddress)
      return refuse(
        socket,
        429,
        `${this.maxAnonymousPerAddress} connections from your address have not sent an API key, which is the ` +
          'limit (a quarter of maxConnections); use or close them',
      );
    this.#add({ limit: this, socket, address, openedAt: this.#now(), account: undefined });
    return true;
  }

  /** See `claimConnection`. */
  claim(connection: Connection, accountId: string): void {
    const used = this.openOf(accountId);
    if (used >= this.maxPerAccount && accountId !== ROOT_ACCOUNT_ID) {
      setTimeout(() => connection.socket.destroy(), REFUSED_MS).unref();
      throw new BerthError(
        'rate',
        `the limit of connections of this account is reached: ${used} of ${this.maxPerAccount} are ` +
          'open; close some, or ask the operator to raise maxConnectionsPerAccount',
        {
          headers: { 'retry-after': '1' },
          limit: { name: 'maxConnectionsPerAccount', owner: accountId, used, maximum: this.maxPerAccount },
        },
      );
    }
    this.#release(connection);
    connection.account = accountId;
    this.#byAccount.set(accountId, used + 1);
  }

  #add(connection: Connection): void {
    const { socket, address } = connection;
    const peer = peerOf(socket);
    this.#open += 1;
    this.#anonymous.add(connection);
    this.#byAddress.set(address, (this.#byAddress.get(address) ?? 0) + 1);
    connections.set(socket, connection);
    if (peer !== undefined) connectionsByPeer.set(peer, connection);
    socket.once('close', () => {
      this.#open -= 1;
      this.#release(connection);
      if (peer !== undefined && connectionsByPeer.get(peer) === connection) connectionsByPeer.delete(peer);
    });
  }

  /** Takes it from its account, or from those without a key. */
  #release(connection: Connection): void {
    const { account, address } = connection;
    if (account !== undefined) decrement(this.#byAccount, account);
    else if (this.#anonymous.delete(connection)) decrement(this.#byAddress, address);
    connection.account = undefined;
  }

  /** Closes the oldest connection without a key, unless it is new. */
  #makeRoom(): boolean {
    const [oldest] = this.#anonymous;
    if (oldest === undefined || this.#now() - oldest.openedAt < ANONYMOUS_MS) return false;
    // It counts until its descriptor is closed, in this turn of the event loop.
    this.#release(oldest);
    oldest.socket.destroy();
    return true;
  }
}

function decrement(counts: Map<string, number>, name: string): void {
  const count = (counts.get(name) ?? 0) - 1;
  if (count > 0) counts.set(name, count);
  else counts.delete(name);
}

/** What the client has sent is read, or the answer would be lost with a reset. */
function refuse(socket: Socket, status: 429 | 503, error: string): false {
  const body = JSON.stringify({ error });
  socket.on('error', () => socket.destroy()).resume();
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nRetry-After: 1\r\n` +
      `Content-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\n` +
      `\r\n${body}`,
    () => socket.destroySoon(),
  );
  return false;
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
