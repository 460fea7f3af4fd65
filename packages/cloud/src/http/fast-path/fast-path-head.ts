import type { IncomingHttpHeaders } from 'node:http';

/** The first lines of a request, as far as the fast lane understands them. */
export interface FastPathHead {
  method: 'GET' | 'POST';
  url: string;
  headers: IncomingHttpHeaders;
  /** Of the body, in bytes. */
  length: number;
  /** The client wants no further request on this connection. */
  last: boolean;
}

/** Lines of printable text, none of them the continuation of another. */
const PLAIN_LINES = /^(?:[!-~][\t\x20-\x7e\x80-\xff]*\r\n)+$/;
const URL_PATH = /^\/[!-~]*$/;
/** What counts as space here. A text knows more kinds of it, and each would be a doubt. */
const SPACE_AROUND = /^[ \t]+|[ \t]+$/g;
const HEADER_NAME = /^[a-z0-9!#$%&'*+.^_`|~-]+$/;
/** What changes how a request is read. The fast lane reads plain ones. */
const UNSUPPORTED_HEADERS = new Set([
  'transfer-encoding',
  'upgrade',
  'expect',
  'trailer',
  'te',
  'http2-settings',
]);

/**
 * Reads a head, with the line end of its last line. Undefined for whatever is not plain beyond
 * doubt: a doubtful request is nothing to be clever about, and Node reads it instead.
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
  for (let from = firstEnd + 2; from < text.length; ) {
    const end = text.indexOf('\r\n', from);
    const colon = text.indexOf(':', from);
    if (colon === -1 || colon > end) return undefined;
    const name = text.slice(from, colon).toLowerCase();
    if (!HEADER_NAME.test(name) || UNSUPPORTED_HEADERS.has(name) || headers[name] !== undefined)
      return undefined;
    headers[name] = text.slice(colon + 1, end).replace(SPACE_AROUND, '');
    from = end + 2;
  }
  const { host, connection, 'content-length': length = '0' } = headers;
  if (host === undefined || !/^\d{1,9}$/.test(length) || (method === 'GET' && length !== '0'))
    return undefined;
  const wishes = connection?.toLowerCase();
  if (wishes !== undefined && wishes !== 'keep-alive' && wishes !== 'close') return undefined;
  return { method, url, headers, length: Number(length), last: wishes === 'close' };
}
