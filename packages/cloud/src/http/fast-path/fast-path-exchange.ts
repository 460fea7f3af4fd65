import { isUtf8 } from 'node:buffer';
import { STATUS_CODES } from 'node:http';
import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import { JSON_CONTENT_TYPE } from '../raw-http.ts';
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

  /** Its body ends there, in these bytes. */
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

  resume(): void {
    // There is nothing left to read.
  }
}

/** How long an idle connection is kept, which clients are told. */
export const KEEP_ALIVE_SECONDS = 75;
const KEEP_ALIVE_HEADERS = `connection: keep-alive\r\nkeep-alive: timeout=${KEEP_ALIVE_SECONDS}\r\n\r\n`;
const CLOSE_HEADERS = 'connection: close\r\n\r\n';
const OK_JSON = `HTTP/1.1 200 OK\r\ncontent-type: ${JSON_CONTENT_TYPE}\r\ncontent-length: `;

/** The answer to it, written in one go. */
export class FastPathResponse implements BasicResponse {
  readonly #socket: Socket;
  readonly #onEnd: (kept: boolean) => void;
  /** One or two. A list that grows in place would reserve room for seventeen. */
  #listeners: readonly { event: 'close' | 'finish'; listener: () => void }[] = [];
  /** Whether the connection is kept for another request. */
  shouldKeepAlive: boolean;
  #head = '';
  /** Of the body, in bytes. */
  #length = 0;
  headersSent = false;
  writableEnded = false;
  #connectionClosed = false;

  constructor(socket: Socket, keep: boolean, onEnd: (kept: boolean) => void) {
    this.#socket = socket;
    this.shouldKeepAlive = keep;
    this.#onEnd = onEnd;
  }

  get destroyed(): boolean {
    return this.#connectionClosed || this.#socket.destroyed;
  }

  on(event: 'close' | 'finish', listener: () => void): void {
    this.#listeners = [...this.#listeners, { event, listener }];
  }

  writeHead(status: number, headers: Record<string, string | number> = {}): void {
    let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n`;
    for (const name of Object.keys(headers)) head += `${name}: ${headers[name]}\r\n`;
    this.#head = head;
    this.#length = Number(headers['content-length'] ?? 0);
    this.headersSent = true;
  }

  /** What most answers are. */
  endOkJson(body: string): void {
    this.#length = Buffer.byteLength(body);
    this.#head = `${OK_JSON}${this.#length}\r\n`;
    this.headersSent = true;
    this.end(body);
  }

  end(body = ''): void {
    if (this.writableEnded) return;
    this.writableEnded = true;
    const text =
      this.#head + (this.shouldKeepAlive ? keepAliveHeaders() : dateHeader() + CLOSE_HEADERS) + body;
    // Where every character takes one byte, the text need not be encoded.
    const encoding = this.#length === body.length ? 'latin1' : 'utf8';
    const isWatched = this.#listeners.some(({ event }) => event === 'finish');
    if (isWatched) this.#socket.write(text, encoding, (error) => (error ? this.closed() : this.#left()));
    else this.#socket.write(text, encoding);
    this.#onEnd(this.shouldKeepAlive);
    // Nobody asks whether it has left: with the last word the exchange is over.
    if (!isWatched) this.closed();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** The connection is gone; what was not written never will be. */
  closed(): void {
    if (this.#connectionClosed) return;
    this.#connectionClosed = true;
    this.#tell('close');
  }

  #left(): void {
    if (this.#connectionClosed) return;
    this.#tell('finish');
    this.closed();
  }

  #tell(event: 'close' | 'finish'): void {
    for (const heard of this.#listeners) if (heard.event === event) heard.listener();
  }
}

let cachedHeaders = '';
let cachedSecond = 0;

/** How most heads end, made once a second. */
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
