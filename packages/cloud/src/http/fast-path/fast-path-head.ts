import type { IncomingHttpHeaders } from 'node:http';

/** The request line and the headers of a request that the fast path understands. */
export interface FastPathHead {
  method: 'GET' | 'POST';
  url: string;
  headers: IncomingHttpHeaders;
  /** Bytes of the body. */
  length: number;
  /** The client sends no further request on this connection. */
  closesConnection: boolean;
}

/** Lines of printable text without obsolete line folding. */
const PLAIN_LINES = /^(?:[!-~][\t\x20-\x7e\x80-\xff]*\r\n)+$/;
const URL_PATH = /^\/[!-~]*$/;
const HEADER_NAME = /^[a-z0-9!#$%&'*+.^_`|~-]+$/;
/** More are left to Node, which has its own limit. */
const MAX_HEADERS = 100;
/** They change how a request or its connection is read; a cookie may carry a session. */
const UNSUPPORTED_HEADERS = new Set([
  'cookie',
  'transfer-encoding',
  'proxy-connection',
  'upgrade',
  'expect',
  'trailer',
  'te',
  'http2-settings',
]);

/**
 * Parses a head, given with the line end of its last line. Undefined if anything in it is unusual:
 * then Node parses it instead.
 */
export function parseFastPathHead(text: string): FastPathHead | undefined {
  if (!PLAIN_LINES.test(text)) return undefined;
  const firstEnd = text.indexOf('\r\n');
  const methodEnd = text.indexOf(' ');
  const method = text.slice(0, methodEnd);
  if (method !== 'GET' && method !== 'POST') return undefined;
  const urlEnd = firstEnd - ' HTTP/1.1'.length;
  if (!text.startsWith(' HTTP/1.1', urlEnd)) return undefined;
  const url = text.slice(methodEnd + 1, urlEnd);
  if (!URL_PATH.test(url)) return undefined;

  const headers: IncomingHttpHeaders = {};
  let count = 0;
  for (let from = firstEnd + 2; from < text.length; ) {
    const end = text.indexOf('\r\n', from);
    const colon = text.indexOf(':', from);
    if (colon === -1 || colon > end) return undefined;
    const name = supportedName(text.slice(from, colon));
    count += 1;
    if (count > MAX_HEADERS || name === undefined || headers[name] !== undefined) return undefined;
    headers[name] = trimSpace(text, colon + 1, end);
    from = end + 2;
  }
  const { host, connection, 'content-length': length = '0' } = headers;
  if (host === undefined || !/^\d{1,9}$/.test(length) || (method === 'GET' && length !== '0'))
    return undefined;
  const option = connection?.toLowerCase();
  if (option !== undefined && option !== 'keep-alive' && option !== 'close') return undefined;
  return { method, url, headers, length: Number(length), closesConnection: option === 'close' };
}

/** Names that clients have sent, in lower case: they send few different ones. */
const knownNames = new Map<string, string>();
const MAX_KNOWN_NAMES = 200;
const MAX_KNOWN_NAME_LENGTH = 50;

/** In lower case; undefined where the fast path does not serve requests with such a header. */
function supportedName(received: string): string | undefined {
  const known = knownNames.get(received);
  if (known !== undefined) return known;
  const name = received.toLowerCase();
  if (!HEADER_NAME.test(name) || UNSUPPORTED_HEADERS.has(name)) return undefined;
  if (knownNames.size < MAX_KNOWN_NAMES && name.length <= MAX_KNOWN_NAME_LENGTH)
    // A slice would keep the whole head in memory.
    knownNames.set(Buffer.from(received, 'latin1').toString('latin1'), name);
  return name;
}

const SPACE = 0x20;
const TAB = 0x09;

/** Without the white space of HTTP around it: `trim()` would remove more. */
function trimSpace(text: string, start: number, end: number): string {
  const isSpace = (at: number): boolean => text.charCodeAt(at) === SPACE || text.charCodeAt(at) === TAB;
  let from = start;
  let to = end;
  while (from < to && isSpace(from)) from += 1;
  while (to > from && isSpace(to - 1)) to -= 1;
  return text.slice(from, to);
}
