import type { Socket } from 'node:net';
import { unpooledCopy } from '../../support/unpooled-copy.ts';
import { KEEP_ALIVE_SECONDS, FastPathRequest, FastPathResponse } from './fast-path-exchange.ts';
import { parseFastPathHead } from './fast-path-head.ts';
import type { FastPathHead } from './fast-path-head.ts';

/** Node reads longer heads and bodies: it does so piece by piece. */
const MAX_HEAD_BYTES = 16 * 1024;
const MAX_BODY_BYTES = 256 * 1024;
/**
 * Of received bytes that are not served yet. More than one request, so that a single request never blocks
 * itself.
 */
const MAX_BUFFERED_BYTES = 2 * MAX_BODY_BYTES;
/**
 * A request that takes longer to arrive goes to Node, which waits longer and answers when its time is over.
 */
const REQUEST_TIMEOUT_MS = 60_000;
/** A client that reads nothing of its response for this long is disconnected. */
const WRITE_STALL_TIMEOUT_MS = 300_000;
const HEAD_END = '\r\n\r\n';
const CARRIAGE_RETURN = 0x0d;

/** Serves the requests of the fast path. */
export interface FastPathHandler {
  /** Whether the fast path serves this request. If not, the connection goes to Node. */
  accepts(head: FastPathHead): boolean | Promise<boolean>;
  serveFastPath(request: FastPathRequest, response: FastPathResponse): void;
  /** The server is stopping: connections end after their response. */
  readonly closing: boolean;
}

export interface FastPathConnectionDeps {
  socket: Socket;
  handler: FastPathHandler;
  passToNode(socket: Socket): void;
  /** The connection ended in the middle of a request. */
  rejectTruncated(socket: Socket): void;
  onClose(connection: FastPathConnection): void;
}

/**
 * One connection on the fast path. Most requests of a queue are small, plain and alike; to read
 * them here costs a third of what Node's HTTP needs for a request. The first request that is not
 * like that goes to Node with the connection, unread, and so does everything after it.
 */
export class FastPathConnection {
  readonly #deps: FastPathConnectionDeps;
  #received: Buffer | undefined;
  #response: FastPathResponse | undefined;
  /** The handler is deciding whether it accepts the request. */
  #deciding = false;
  /**
   * The last head as received, with its empty line. Clients repeat their headers: bytes that begin with it
   * are not parsed again.
   */
  #lastHead: { bytes: Buffer; head: FastPathHead } | undefined;
  /** When the last timeout check that saw no activity began to see none. */
  #idleSince: number | undefined;
  /** `socket.bytesWritten` at the last timeout check. */
  #bytesWritten = 0;
  readonly #onData = (bytes: Buffer): void => this.#receive(bytes);
  readonly #onEnd = (): void => this.#ended();
  readonly #onError = (): void => void this.#deps.socket.destroy();
  readonly #onDrain = (): void => {
    this.#serveNext();
    this.#resumeReading();
  };
  readonly #onClosed = (): void => {
    this.#response?.connectionClosed();
    this.#deps.onClose(this);
  };

  constructor(deps: FastPathConnectionDeps) {
    this.#deps = deps;
    deps.socket
      .on('data', this.#onData)
      .on('end', this.#onEnd)
      .on('error', this.#onError)
      .on('close', this.#onClosed)
      .on('drain', this.#onDrain);
  }

  get idle(): boolean {
    return this.#response === undefined && !this.#deciding && this.#received === undefined;
  }

  /** Ends a connection without activity. Called every few seconds. */
  checkTimeout(now: number): void {
    const { socket } = this.#deps;
    const isSending = this.#response?.isSending === true || socket.writableLength > 0;
    if ((this.#response !== undefined && !isSending) || this.#deciding) return;
    // A large response is written in pieces, each after the one before it has left: while it moves, this
    // number grows.
    if (socket.bytesWritten !== this.#bytesWritten) this.#idleSince = undefined;
    this.#bytesWritten = socket.bytesWritten;
    this.#idleSince ??= now;
    if (now - this.#idleSince <= this.#timeoutMs(isSending)) return;
    if (this.#received !== undefined && !isSending) this.#handOver();
    else socket.destroy();
  }

  #timeoutMs(isSending: boolean): number {
    if (isSending) return WRITE_STALL_TIMEOUT_MS;
    return this.#received === undefined ? KEEP_ALIVE_SECONDS * 1000 : REQUEST_TIMEOUT_MS;
  }

  /** Ends the connection at once, even during a response. */
  destroy(): void {
    this.#deps.socket.destroy();
  }

  /** Ends the connection once everything is written. */
  end(): void {
    this.#deps.socket.destroySoon();
  }

  #receive(bytes: Buffer): void {
    // Nothing is served after the last response, so nothing is kept.
    if (!this.#deps.socket.writable) return;
    if (this.#received === undefined) {
      this.#received = bytes;
      this.#idleSince = undefined;
    } else {
      this.#received = Buffer.concat([this.#received, bytes]);
    }
    this.#serveNext();
    if ((this.#received?.length ?? 0) > MAX_BUFFERED_BYTES) this.#deps.socket.pause();
  }

  #ended(): void {
    const { socket, rejectTruncated } = this.#deps;
    const isTruncated = this.#received !== undefined && this.#response === undefined && !this.#deciding;
    if (isTruncated && socket.writable) rejectTruncated(socket);
    else socket.end();
  }

  /**
   * Serves the next request if it has arrived whole. Nothing is served on an ended connection: its client
   * could not be answered, and would repeat the request elsewhere.
   */
  #serveNext(): void {
    const { socket, handler } = this.#deps;
    const bytes = this.#received;
    if (
      bytes === undefined ||
      this.#response !== undefined ||
      this.#deciding ||
      !socket.writable ||
      socket.writableNeedDrain
    )
      return;
    if (!this.#startsWithLastHead(bytes)) {
      if (!canBeFastPath(bytes)) return this.#handOver();
      const end = bytes.indexOf(HEAD_END);
      if (end === -1)
        return bytes.length > MAX_HEAD_BYTES || hasBareLineFeed(bytes) ? this.#handOver() : undefined;
      const parsed =
        end > MAX_HEAD_BYTES ? undefined : parseFastPathHead(bytes.toString('latin1', 0, end + 2));
      if (parsed === undefined || parsed.length > MAX_BODY_BYTES) return this.#handOver();
      this.#lastHead = { bytes: unpooledCopy(bytes.subarray(0, end + HEAD_END.length)), head: parsed };
    }
    const { bytes: headBytes, head } = this.#lastHead as { bytes: Buffer; head: FastPathHead };
    const bodyEnd = headBytes.length + head.length;
    const accepted = handler.accepts(head);
    if (accepted === true) return this.#serveIfComplete(head, bodyEnd);
    if (accepted === false) return this.#handOver();
    this.#deciding = true;
    void accepted
      .catch(() => false)
      .then((yes) => {
        this.#deciding = false;
        if (!socket.writable) return;
        if (!yes) return this.#handOver();
        this.#serveIfComplete(head, bodyEnd);
        this.#resumeReading();
      });
  }

  #serveIfComplete(head: FastPathHead, bodyEnd: number): void {
    const received = this.#received?.length ?? 0;
    if (received < bodyEnd) return;
    // Node rejects bytes behind a request that closes the connection.
    if (head.closesConnection && received > bodyEnd) return this.#handOver();
    this.#serve(head, bodyEnd);
  }

  /** Continues reading where it was paused because too much had arrived. */
  #resumeReading(): void {
    const { socket } = this.#deps;
    if (socket.isPaused() && (this.#received?.length ?? 0) <= MAX_BUFFERED_BYTES) socket.resume();
  }

  #startsWithLastHead(bytes: Buffer): boolean {
    if (this.#lastHead === undefined) return false;
    const { length } = this.#lastHead.bytes;
    return bytes.length >= length && bytes.compare(this.#lastHead.bytes, 0, length, 0, length) === 0;
  }

  #serve(head: FastPathHead, end: number): void {
    const { socket, handler } = this.#deps;
    const bytes = this.#received as Buffer;
    this.#received = bytes.length === end ? undefined : bytes.subarray(end);
    this.#response = new FastPathResponse(socket, !head.closesConnection && !handler.closing, (keepAlive) =>
      this.#answered(keepAlive),
    );
    handler.serveFastPath(new FastPathRequest(head, bytes, end, socket), this.#response);
  }

  #answered(keepAlive: boolean): void {
    const { socket, handler } = this.#deps;
    this.#response = undefined;
    this.#idleSince = undefined;
    // Not only `end()`: a client that keeps its side open would keep a stopping server from ending.
    if (!keepAlive || handler.closing) return socket.destroySoon();
    this.#resumeReading();
    if (this.#received !== undefined) setImmediate(() => this.#serveNext());
  }

  #handOver(): void {
    const { socket, passToNode, onClose } = this.#deps;
    socket
      .off('data', this.#onData)
      .off('end', this.#onEnd)
      .off('error', this.#onError)
      .off('close', this.#onClosed)
      .off('drain', this.#onDrain);
    onClose(this);
    socket.pause();
    if (this.#received !== undefined) socket.unshift(this.#received);
    this.#received = undefined;
    passToNode(socket);
    // The bytes that were put back flow first; after them, Node reads from the connection itself.
    socket.resume();
  }
}

const REQUEST_LINE_PREFIXES = ['POST /v2/', 'GET /v2/'];

/**
 * Whether these bytes are, or can become, a request for the fast path. If not, Node gets them at once: nobody
 * waits for the rest of something that is not HTTP.
 */
function canBeFastPath(bytes: Buffer): boolean {
  const start = bytes.toString('latin1', 0, 9);
  return REQUEST_LINE_PREFIXES.some((prefix) => start.startsWith(prefix) || prefix.startsWith(start));
}

/** Node rejects a line that ends without a carriage return, at once. */
function hasBareLineFeed(bytes: Buffer): boolean {
  for (let end = bytes.indexOf('\n'); end !== -1; end = bytes.indexOf('\n', end + 1))
    if (end === 0 || bytes[end - 1] !== CARRIAGE_RETURN) return true;
  return false;
}
