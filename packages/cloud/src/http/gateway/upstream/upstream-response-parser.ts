import { MAX_RESPONSE_HEAD_BYTES } from '../gateway-limits.ts';

/** The response is not HTTP, or two parsers could understand it differently. */
export class BadUpstreamResponse extends Error {}

/** Names and values alternate, as received. */
export type RawHeaders = string[];

export interface UpstreamResponseHead {
  status: number;
  message: string;
  headers: RawHeaders;
  /** Bytes of its body, if it says so. */
  length: number | undefined;
}

export interface UpstreamResponseSink {
  head(head: UpstreamResponseHead): void;
  /** A piece of the body. The bytes are valid until `batchParsed`. */
  data(chunk: Buffer): void;
  end(trailers: RawHeaders): void;
}

const END_OF_HEAD = Buffer.from('\r\n\r\n');
const EMPTY = Buffer.alloc(0);
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: ([^\x00-\x08\x0a-\x1f\x7f]*))?$/;
const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const INVALID_VALUE = /[\x00-\x08\x0a-\x1f\x7f]/;
const CONTENT_LENGTH = /^\d{1,15}$/;
/** With extensions, which nobody uses, as RFC 9112 has them: a name, and a value that may be quoted. */
const CHUNK_SIZE =
  /^([0-9a-fA-F]{1,8})[ \t]*(?:;[\w!#$%&'*+.^`|~-]+(?:=(?:[\w!#$%&'*+.^`|~-]+|"[\t !#-[\]-~]*"))?)*$/;
const MAX_CHUNK_LINE = 4096;
const LINE_FEED = 0x0a;

type State =
  | 'idle'
  | 'head'
  | 'body'
  | 'until-close'
  | 'chunk-size'
  | 'chunk'
  | 'chunk-end'
  | 'trailers'
  | 'upgraded';

/**
 * Parses the responses on one connection, in whatever pieces they arrive. It is strict: anything
 * that is not plain HTTP/1.1 is an error, so that a response can never be taken for a part of
 * another. ARCHITECTURE.md says why the gateway has its own parser; a test compares it with Node's.
 */
export class UpstreamResponseParser {
  #sink: UpstreamResponseSink | undefined;
  #state: State = 'idle';
  #isHead = false;
  #expectsUpgrade = false;
  /** The beginning of a head or a line whose end has not arrived. */
  #partial: Buffer = EMPTY;
  /** Bytes of the body, or of the chunk, that have not arrived. */
  #remaining = 0;
  #trailers: RawHeaders = [];
  #trailerBytes = 0;
  #persistent = false;

  /** The next response belongs to a request with this method. */
  begin(method: string, sink: UpstreamResponseSink, expectsUpgrade = false): void {
    this.#sink = sink;
    this.#state = 'head';
    this.#isHead = method === 'HEAD';
    this.#expectsUpgrade = expectsUpgrade;
    this.#trailers = [];
    this.#trailerBytes = 0;
  }

  /** The response has arrived whole, and another request may follow on this connection. */
  get reusable(): boolean {
    return this.#state === 'idle' && this.#persistent;
  }

  /** The worker agreed to an upgrade: the bytes that follow are not HTTP. */
  get upgraded(): boolean {
    return this.#state === 'upgraded';
  }

  /** Returns how many of the bytes it has used: all of them, except after an upgrade. */
  feed(bytes: Buffer): number {
    let at = 0;
    while (at < bytes.length) {
      switch (this.#state) {
        case 'idle':
          throw new BadUpstreamResponse('it sent more than its response');
        case 'upgraded':
          return at;
        case 'head':
          at = this.#feedHead(bytes, at);
          break;
        case 'body':
        case 'chunk':
          at = this.#feedBody(bytes, at);
          break;
        case 'until-close':
          this.#sink?.data(at === 0 ? bytes : bytes.subarray(at));
          return bytes.length;
        case 'chunk-size':
        case 'chunk-end':
        case 'trailers':
          at = this.#feedLine(bytes, at);
      }
    }
    return at;
  }

  /** The connection was closed. True if that ends the response. */
  close(): boolean {
    if (this.#state !== 'until-close') return false;
    this.#finish();
    return true;
  }

  #feedHead(bytes: Buffer, from: number): number {
    const partial = this.#partial.length;
    // The end of the head may be split over two pieces.
    const whole =
      partial === 0 ? bytes : Buffer.concat([this.#partial, from === 0 ? bytes : bytes.subarray(from)]);
    const start = partial === 0 ? from : 0;
    const end = whole.indexOf(END_OF_HEAD, Math.max(start, partial - 3));
    if ((end === -1 ? whole.length : end) - start > MAX_RESPONSE_HEAD_BYTES)
      throw new BadUpstreamResponse(`its headers are larger than ${MAX_RESPONSE_HEAD_BYTES} bytes`);
    if (end === -1) {
      this.#partial = Buffer.from(whole.subarray(start));
      return bytes.length;
    }
    this.#partial = EMPTY;
    this.#readHead(whole.toString('latin1', start, end));
    return end + 4 - (whole.length - bytes.length);
  }

  #readHead(text: string): void {
    const endOfLine = text.indexOf('\r\n');
    const match = STATUS_LINE.exec(endOfLine === -1 ? text : text.slice(0, endOfLine));
    if (match === null) throw new BadUpstreamResponse('its status line is not HTTP/1.1');
    const status = Number(match[2]);
    const headers: RawHeaders = [];
    let length: number | undefined;
    let chunked = false;
    let persistent = match[1] === '1';
    for (let at = endOfLine === -1 ? text.length : endOfLine + 2; at < text.length; ) {
      const next = text.indexOf('\r\n', at);
      const line = next === -1 ? text.slice(at) : text.slice(at, next);
      at = next === -1 ? text.length : next + 2;
      const name = readField(line, headers);
      if (name.length !== 10 && name.length !== 14 && name.length !== 17) continue;
      const value = headers[headers.length - 1] as string;
      switch (name.toLowerCase()) {
        case 'content-length':
          if (!CONTENT_LENGTH.test(value) || length !== undefined)
            throw new BadUpstreamResponse('its Content-Length is not one number');
          length = Number(value);
          break;
        case 'transfer-encoding':
          if (value.toLowerCase() !== 'chunked' || chunked)
            throw new BadUpstreamResponse(`its Transfer-Encoding is ${JSON.stringify(value.slice(0, 64))}`);
          chunked = true;
          break;
        case 'connection':
          if (/\bclose\b/i.test(value)) persistent = false;
          break;
        case 'keep-alive':
          // A server that closes after a second may close while the next request is on its way.
          if (/timeout=[01]\b/i.test(value)) persistent = false;
      }
    }
    if (chunked && length !== undefined)
      throw new BadUpstreamResponse('it has both Content-Length and Transfer-Encoding');
    if (status < 200) return this.#interim({ status, message: match[3] ?? '', headers, length });
    this.#persistent = persistent;
    const empty = this.#isHead || status === 204 || status === 304;
    this.#state = empty ? 'idle' : chunked ? 'chunk-size' : length === undefined ? 'until-close' : 'body';
    if (this.#state === 'until-close') this.#persistent = false;
    this.#remaining = length ?? 0;
    this.#sink?.head({ status, message: match[3] ?? '', headers, length });
    if (empty || (this.#state === 'body' && this.#remaining === 0)) this.#finish();
  }

  /** A status below 200 comes before the final response. */
  #interim(head: UpstreamResponseHead): void {
    if (head.status !== 101) return;
    if (!this.#expectsUpgrade)
      throw new BadUpstreamResponse('it changed the protocol without an upgrade request');
    this.#state = 'upgraded';
    this.#sink?.head(head);
  }

  #feedBody(bytes: Buffer, from: number): number {
    const end = Math.min(bytes.length, from + this.#remaining);
    this.#remaining -= end - from;
    this.#sink?.data(from === 0 && end === bytes.length ? bytes : bytes.subarray(from, end));
    if (this.#remaining > 0) return end;
    if (this.#state === 'chunk') this.#state = 'chunk-end';
    else this.#finish();
    return end;
  }

  #feedLine(bytes: Buffer, from: number): number {
    const end = bytes.indexOf(LINE_FEED, from);
    const piece = bytes.subarray(from, end === -1 ? bytes.length : end + 1);
    const line = this.#partial.length === 0 ? piece : Buffer.concat([this.#partial, piece]);
    if (line.length > MAX_CHUNK_LINE) throw new BadUpstreamResponse('a line between its chunks is too long');
    if (end === -1) {
      this.#partial = Buffer.from(line);
      return bytes.length;
    }
    this.#partial = EMPTY;
    const text = line.toString('latin1');
    if (!text.endsWith('\r\n')) throw new BadUpstreamResponse('a line of it does not end in CR LF');
    this.#readLine(text.slice(0, -2));
    return end + 1;
  }

  #readLine(line: string): void {
    if (this.#state === 'chunk-end') {
      if (line !== '') throw new BadUpstreamResponse('a chunk is longer than it says');
      this.#state = 'chunk-size';
    } else if (this.#state === 'chunk-size') {
      const size = CHUNK_SIZE.exec(line)?.[1];
      if (size === undefined) throw new BadUpstreamResponse('the size of a chunk is not a number');
      this.#remaining = Number.parseInt(size, 16);
      this.#state = this.#remaining === 0 ? 'trailers' : 'chunk';
    } else if (line === '') {
      this.#finish();
    } else {
      this.#trailerBytes += line.length;
      if (this.#trailerBytes > MAX_RESPONSE_HEAD_BYTES)
        throw new BadUpstreamResponse(`its trailers are larger than ${MAX_RESPONSE_HEAD_BYTES} bytes`);
      readField(line, this.#trailers);
    }
  }

  #finish(): void {
    const sink = this.#sink;
    this.#state = 'idle';
    this.#sink = undefined;
    sink?.end(this.#trailers);
  }
}

/** Appends `name: value` to the list; returns the name. */
function readField(line: string, into: RawHeaders): string {
  const colon = line.indexOf(':');
  const name = line.slice(0, Math.max(0, colon));
  let from = colon + 1;
  let to = line.length;
  while (from < to && isBlank(line.charCodeAt(from))) from += 1;
  while (to > from && isBlank(line.charCodeAt(to - 1))) to -= 1;
  const value = line.slice(from, to);
  if (!HEADER_NAME.test(name) || INVALID_VALUE.test(value))
    throw new BadUpstreamResponse(`the header ${JSON.stringify(line.slice(0, 64))} is not valid`);
  into.push(name, value);
  return name;
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}
