import type { Socket } from 'node:net';
import { KEEP_ALIVE_SECONDS, FastPathRequest, FastPathResponse } from './fast-path-exchange.ts';
import { parseFastPathHead } from './fast-path-head.ts';
import type { FastPathHead } from './fast-path-head.ts';
import { stopSharedReadBuffer, useSharedReadBuffer } from './shared-read-buffer.ts';

/** A longer head or body is Node's: it reads them piece by piece. */
const MAX_HEAD_BYTES = 16 * 1024;
const MAX_BODY_BYTES = 256 * 1024;
/** Of what has come and is not served yet. More than one request, so that whoever sends one never waits for itself. */
const MAX_BUFFERED_BYTES = 2 * MAX_BODY_BYTES;
/** A request that takes longer to arrive is Node's, which has more patience and an answer for when that is over. */
const REQUEST_TIMEOUT_MS = 60_000;
/** A client that takes nothing of its answer for this long is not waited for. The system gives it on in large pieces, and to a slow client seldom. */
const WRITE_STALL_TIMEOUT_MS = 300_000;
const HEAD_END = '\r\n\r\n';
const CARRIAGE_RETURN = 0x0d;

/** Whoever serves what comes over the fast lane. */
export interface FastPathHandler {
  /** Whether this is a request for it. What is not goes to Node, and the connection with it. */
  wants(head: FastPathHead): boolean | Promise<boolean>;
  servePlain(request: FastPathRequest, response: FastPathResponse): void;
  readonly closing: boolean;
}

export interface FastPathConnectionDeps {
  socket: Socket;
  handler: FastPathHandler;
  /** Gives the connection to Node's own HTTP. */
  passToNode(socket: Socket): void;
  onClose(lane: FastPathConnection): void;
}

/**
 * One connection on the fast lane. Most requests of a queue are small, plain and alike; reading
 * them here costs a third of what Node's HTTP takes for any request at all. The first one that
 * is not such a request goes to Node with the connection, unread, and so does all that follows.
 */
export class FastPathConnection {
  readonly #deps: FastPathConnectionDeps;
  #waiting: Buffer | undefined;
  #response: FastPathResponse | undefined;
  #sorting = false;
  /** The last head, as it came, with the empty line behind it. A client says the same thing again and again: what begins like it is not read once more. */
  #last: { bytes: Buffer; head: FastPathHead } | undefined;
  /** Since when it is known that nothing happens; undefined where something has, since the last look. */
  #quietSince: number | undefined;
  /** What was still to be written at the last look. */
  #unwritten = 0;
  readonly #onData = (bytes: Buffer): void => this.#read(bytes);
  readonly #onEnd = (): void => void this.#deps.socket.end();
  readonly #onError = (): void => void this.#deps.socket.destroy();
  readonly #onDrain = (): void => {
    this.#next();
    this.#readOn();
  };
  readonly #onClosed = (): void => {
    this.#response?.closed();
    this.#deps.onClose(this);
  };

  constructor(deps: FastPathConnectionDeps) {
    this.#deps = deps;
    useSharedReadBuffer(deps.socket, this.#onData);
    deps.socket
      .on('data', this.#onData)
      .on('end', this.#onEnd)
      .on('error', this.#onError)
      .on('close', this.#onClosed)
      .on('drain', this.#onDrain);
  }

  get idle(): boolean {
    return this.#response === undefined && !this.#sorting && this.#waiting === undefined;
  }

  /** Ends a connection on which nothing has happened for too long. */
  checkTimeout(now: number): void {
    if (this.#response !== undefined || this.#sorting) return;
    const unwritten = unwrittenBytes(this.#deps.socket);
    // A large answer goes on leaving long after it was given. While it does, something happens.
    if (unwritten !== this.#unwritten) this.#quietSince = undefined;
    this.#unwritten = unwritten;
    this.#quietSince ??= now;
    if (now - this.#quietSince <= this.#patience) return;
    if (this.#waiting !== undefined && unwritten === 0) this.#handOver();
    else this.#deps.socket.destroy();
  }

  get #patience(): number {
    if (this.#unwritten > 0) return WRITE_STALL_TIMEOUT_MS;
    return this.#waiting === undefined ? KEEP_ALIVE_SECONDS * 1000 : REQUEST_TIMEOUT_MS;
  }

  /** Ends it whatever is under way. */
  destroy(): void {
    this.#deps.socket.destroy();
  }

  end(): void {
    this.#deps.socket.destroySoon();
  }

  /** The bytes are there until it returns. */
  #read(bytes: Buffer): void {
    // Nothing is served behind the last answer, so nothing of it is kept.
    if (!this.#deps.socket.writable) return;
    if (this.#waiting === undefined) {
      this.#waiting = bytes;
      this.#quietSince = undefined;
    } else {
      this.#waiting = Buffer.concat([this.#waiting, bytes]);
    }
    this.#next();
    if ((this.#waiting?.length ?? 0) > MAX_BUFFERED_BYTES) this.#deps.socket.pause();
    if (this.#waiting?.buffer === bytes.buffer) this.#waiting = Buffer.from(this.#waiting);
  }

  /** Serves the next request, if all of it is there. On a connection that was ended no answer can be written: whoever asks there asks again elsewhere, and would have it done twice. */
  #next(): void {
    const { socket, handler } = this.#deps;
    const bytes = this.#waiting;
    if (
      bytes === undefined ||
      this.#response !== undefined ||
      this.#sorting ||
      !socket.writable ||
      socket.writableNeedDrain
    )
      return;
    if (!this.#beginsLikeLast(bytes)) {
      if (!canBeFastPath(bytes)) return this.#handOver();
      const end = bytes.indexOf(HEAD_END);
      if (end === -1)
        return bytes.length > MAX_HEAD_BYTES || hasBareLineEnd(bytes) ? this.#handOver() : undefined;
      const read = end > MAX_HEAD_BYTES ? undefined : parseFastPathHead(bytes.toString('latin1', 0, end + 2));
      if (read === undefined || read.length > MAX_BODY_BYTES) return this.#handOver();
      this.#last = { bytes: Buffer.from(bytes.subarray(0, end + HEAD_END.length)), head: read };
    }
    const { bytes: headBytes, head } = this.#last as { bytes: Buffer; head: FastPathHead };
    const bodyEnd = headBytes.length + head.length;
    const wanted = handler.wants(head);
    if (wanted === true) return bytes.length < bodyEnd ? undefined : this.#serve(head, bodyEnd);
    if (wanted === false) return this.#handOver();
    this.#sorting = true;
    void wanted
      .catch(() => false)
      .then((yes) => {
        this.#sorting = false;
        if (!socket.writable) return;
        if (!yes) this.#handOver();
        else if ((this.#waiting?.length ?? 0) >= bodyEnd) this.#serve(head, bodyEnd);
        else this.#readOn();
      });
  }

  /** Reads on where that was stopped because too much had come. */
  #readOn(): void {
    const { socket } = this.#deps;
    if (socket.isPaused() && (this.#waiting?.length ?? 0) <= MAX_BUFFERED_BYTES) socket.resume();
  }

  #beginsLikeLast(bytes: Buffer): boolean {
    if (this.#last === undefined) return false;
    const { length } = this.#last.bytes;
    return bytes.length >= length && bytes.compare(this.#last.bytes, 0, length, 0, length) === 0;
  }

  #serve(head: FastPathHead, end: number): void {
    const { socket, handler } = this.#deps;
    const bytes = this.#waiting as Buffer;
    this.#waiting = bytes.length === end ? undefined : bytes.subarray(end);
    this.#response = new FastPathResponse(socket, !head.last && !handler.closing, (kept) =>
      this.#answered(kept),
    );
    handler.servePlain(new FastPathRequest(head, bytes, end, socket), this.#response);
  }

  #answered(kept: boolean): void {
    const { socket, handler } = this.#deps;
    this.#response = undefined;
    this.#quietSince = undefined;
    // Not merely ended: a client that keeps its side open would keep a server that stops.
    if (!kept || handler.closing) return socket.destroySoon();
    this.#readOn();
    if (this.#waiting !== undefined) setImmediate(() => this.#next());
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
    stopSharedReadBuffer(socket);
    if (this.#waiting !== undefined) socket.unshift(Buffer.from(this.#waiting));
    this.#waiting = undefined;
    passToNode(socket);
    // What was put back flows first; after it, Node reads from the connection itself.
    socket.resume();
  }
}

const REQUEST_LINE_PREFIXES = ['POST /v2/', 'GET /v2/'];

/** Whether these bytes are, or can become, a request for the lane. Whatever cannot is Node's at once: nobody waits for the rest of what is no HTTP. */
function canBeFastPath(bytes: Buffer): boolean {
  const start = bytes.toString('latin1', 0, 9);
  return REQUEST_LINE_PREFIXES.some(
    (beginning) => start.startsWith(beginning) || beginning.startsWith(start),
  );
}

/** Node refuses a line that ends so, at once. */
function hasBareLineEnd(bytes: Buffer): boolean {
  for (let end = bytes.indexOf('\n'); end !== -1; end = bytes.indexOf('\n', end + 1))
    if (end === 0 || bytes[end - 1] !== CARRIAGE_RETURN) return true;
  return false;
}

/** How many bytes the system has not taken yet. Of one long text Node itself counts all until the last has left; only the connection inside knows how far it is. */
function unwrittenBytes(socket: Socket): number {
  const { _handle: handle } = socket as Socket & { _handle?: { writeQueueSize?: number } | null };
  return socket.writableLength === 0 ? 0 : (handle?.writeQueueSize ?? socket.writableLength);
}
