import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import { STATUS_CODES } from '../../support/node-http.ts';
import { JSON_CONTENT_TYPE, PIECE_BYTES } from '../raw-http.ts';
import type { BasicRequest, BasicResponse } from '../raw-http.ts';
import type { FastPathHead } from './fast-path-head.ts';

/** A request that has arrived whole. */
export class FastPathRequest implements BasicRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly socket: Socket;
  readonly body: string;
  readonly isUtf8: boolean;
  readonly complete = true;
  readonly readableEnded = true;
  readonly head: FastPathHead;

  /** The body ends at `end` in these bytes. */
  constructor(head: FastPathHead, bytes: Buffer, end: number, socket: Socket) {
    const { method, url, headers, length } = head;
    this.head = head;
    this.method = method;
    this.url = url;
    this.headers = headers;
    this.body = length === 0 ? '' : bytes.toString('utf8', end - length, end);
    this.isUtf8 = !this.body.includes('\ufffd') || isUtf8(bytes.subarray(end - length, end));
    this.socket = socket;
  }

  get destroyed(): boolean {
    return this.socket.destroyed;
  }
}

/** How long an idle connection is kept, as the Keep-Alive header says. */
export const KEEP_ALIVE_SECONDS = 75;
const KEEP_ALIVE_HEADERS = `connection: keep-alive\r\nkeep-alive: timeout=${KEEP_ALIVE_SECONDS}\r\n\r\n`;
const CLOSE_HEADERS = 'connection: close\r\n\r\n';
const OK_JSON = `HTTP/1.1 200 OK\r\ncontent-type: ${JSON_CONTENT_TYPE}\r\ncontent-length: `;

/** The response to a fast path request. */
export class FastPathResponse implements BasicResponse {
  readonly #socket: Socket;
  readonly #onEnd: (keepAlive: boolean) => void;
  /** One or two. An array that grows in place would reserve room for seventeen. */
  #listeners: readonly { event: 'close' | 'finish'; listener: () => void }[] = [];
  /** Whether the connection is kept for another request. */
  shouldKeepAlive: boolean;
  statusCode = 200;
  /** Headers that were set before the head was written. */
  #presetHeaders = '';
  #head = '';
  /** Bytes of the body. */
  #length = 0;
  headersSent = false;
  writableEnded = false;
  /** Whether a part of it waits for the part before to leave. */
  isSending = false;
  #closed = false;

  constructor(socket: Socket, keepAlive: boolean, onEnd: (keepAlive: boolean) => void) {
    this.#socket = socket;
    this.shouldKeepAlive = keepAlive;
    this.#onEnd = onEnd;
  }

  get destroyed(): boolean {
    return this.#closed || this.#socket.destroyed;
  }

  on(event: 'close' | 'finish', listener: () => void): void {
    this.#listeners = [...this.#listeners, { event, listener }];
  }

  setHeader(name: string, value: string): void {
    this.#presetHeaders += `${name}: ${value}\r\n`;
  }

  writeHead(status: number, headers: Record<string, string | number> = {}): void {
    let head = this.#startHead(status);
    for (const name of Object.keys(headers)) head += `${name}: ${headers[name]}\r\n`;
    this.#head = head;
    this.#length = Number(headers['content-length'] ?? 0);
  }

  /** The most common response. */
  endOkJson(body: string): void {
    this.headersSent = true;
    this.#length = Buffer.byteLength(body);
    this.#head = `${OK_JSON}${this.#length}\r\n${this.#presetHeaders}`;
    this.end(body);
  }

  endOkJsonPieces(pieces: readonly Uint8Array[], length: number): void {
    if (this.writableEnded) return;
    this.headersSent = true;
    this.writableEnded = true;
    const head = `${OK_JSON}${length}\r\n${this.#presetHeaders}`;
    this.#sendPieces([Buffer.from(head + this.#endOfHead(), 'latin1'), ...pieces]);
  }

  #endOfHead(): string {
    return this.shouldKeepAlive ? keepAliveHeaders() : dateHeader() + CLOSE_HEADERS;
  }

  #startHead(status: number): string {
    this.statusCode = status;
    this.headersSent = true;
    return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${this.#presetHeaders}`;
  }

  end(body = ''): void {
    if (this.writableEnded) return;
    this.writableEnded = true;
    const text = this.#head + this.#endOfHead() + body;
    // Where every character takes one byte, the text need not be encoded.
    const encoding = this.#length === body.length ? 'latin1' : 'utf8';
    if (text.length > PIECE_BYTES) {
      const bytes = Buffer.from(text, encoding);
      return this.#sendPieces(
        Array.from({ length: Math.ceil(bytes.length / PIECE_BYTES) }, (_, index) =>
          bytes.subarray(index * PIECE_BYTES, (index + 1) * PIECE_BYTES),
        ),
      );
    }
    const isWatched = this.#hasFinishListener();
    if (isWatched)
      this.#socket.write(text, encoding, (error) => (error ? this.connectionClosed() : this.#finished()));
    else this.#socket.write(text, encoding);
    this.#onEnd(this.shouldKeepAlive);
    // Nobody asks whether it has left: the exchange is over with the last write.
    if (!isWatched) this.connectionClosed();
  }

  #sendPieces(pieces: readonly Uint8Array[], index = 0): void {
    const isLast = index === pieces.length - 1;
    this.isSending = !isLast;
    this.#socket.write(pieces[index] as Uint8Array, (error) => {
      if (error) this.connectionClosed();
      else if (!isLast) this.#sendPieces(pieces, index + 1);
      else this.#finished();
    });
    if (isLast) this.#onEnd(this.shouldKeepAlive);
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** What was not written by now never will be. */
  connectionClosed(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#emit('close');
  }

  #finished(): void {
    if (this.#closed) return;
    this.#emit('finish');
    this.connectionClosed();
  }

  #hasFinishListener(): boolean {
    return this.#listeners.some(({ event }) => event === 'finish');
  }

  #emit(event: 'close' | 'finish'): void {
    for (const subscription of this.#listeners) if (subscription.event === event) subscription.listener();
  }
}

let cachedHeaders = '';
let cachedSecond = 0;

/** The end of most heads, built once a second. */
function keepAliveHeaders(): string {
  const second = Math.floor(Date.now() / 1000);
  if (second !== cachedSecond) {
    cachedSecond = second;
    cachedHeaders = dateHeader() + KEEP_ALIVE_HEADERS;
  }
  return cachedHeaders;
}

function dateHeader(): string {
  return `date: ${new Date().toUTCString()}\r\n`;
}
