import type { Request } from '../raw-http.ts';
import { REQUEST_ID_HEADER } from '../request-id.ts';
import { WORKER_HEADER } from './worker-affinity.ts';
import type { ForwardedPath } from './gateway-url.ts';
import { prefixCookiePath } from './cookie-path.ts';
import { prefixLocation } from './redirect-location.ts';
import type { RawHeaders, UpstreamResponseHead } from './upstream/upstream-response-parser.ts';

/** They describe one connection, and are not forwarded. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'upgrade',
  'expect',
]);
const FORWARDED_FOR = 'x-forwarded-for';
const FORWARDED_PROTO = 'x-forwarded-proto';
const FORWARDED_HOST = 'x-forwarded-host';
const TRACEPARENT = 'traceparent';
const FORWARDED_PREFIX = 'x-forwarded-prefix';
const WORKER_HEADER_LOWER = WORKER_HEADER.toLowerCase();
const REQUEST_ID_LOWER = REQUEST_ID_HEADER.toLowerCase();
/** Methods whose requests have a Content-Length even if it is 0. */
const WITH_LENGTH: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);

export interface UpstreamRequestHead {
  /** The request line, the headers and the empty line. */
  text: string;
  /** Bytes of its body; undefined if it is sent in chunks. */
  length: number | undefined;
}

/** The head of a request as its worker gets it: headers keep their case and order. */
export function upstreamRequestHead(
  request: Request,
  { path, prefix }: ForwardedPath,
  upgrade?: string,
  traceparent?: string,
): UpstreamRequestHead {
  const { rawHeaders, method = 'GET' } = request;
  const named = namedByConnection(rawHeaders);
  let text = `${method} ${path} HTTP/1.1\r\n`;
  let host = '';
  let forwardedFor = '';
  let forwardedProto = '';
  let forwardedHost = '';
  let length: number | undefined = 0;
  let hasLength = false;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    const value = rawHeaders[at + 1] as string;
    const lower = name.toLowerCase();
    switch (lower) {
      case FORWARDED_FOR:
        forwardedFor += `${value}, `;
        continue;
      case FORWARDED_PROTO:
        forwardedProto = value;
        continue;
      case FORWARDED_HOST:
        forwardedHost = value;
        continue;
      case FORWARDED_PREFIX:
        continue;
      case TRACEPARENT:
        if (traceparent !== undefined) continue;
        break;
      case 'host':
        host = value;
        break;
      case 'content-length':
        length = Number(value);
        hasLength = true;
        break;
      case 'transfer-encoding':
        // The body is sent on in chunks, so this header stays; a duplicate is removed.
        if (length === undefined) continue;
        length = undefined;
        break;
      default:
        if (HOP_BY_HOP.has(lower) || named?.has(lower) === true) continue;
    }
    text += `${name}: ${value}\r\n`;
  }
  if (host === '') text += 'Host: localhost\r\n';
  if (!hasLength && length === 0 && WITH_LENGTH.has(method)) text += 'Content-Length: 0\r\n';
  const { remoteAddress = '', encrypted } = request.socket as typeof request.socket & { encrypted?: boolean };
  const proto = forwardedProto === '' ? (encrypted === true ? 'https' : 'http') : forwardedProto;
  const client = remoteAddress.startsWith('::ffff:') ? remoteAddress.slice(7) : remoteAddress;
  text +=
    `X-Forwarded-For: ${forwardedFor}${client}\r\n` +
    `X-Forwarded-Proto: ${proto}\r\n` +
    `X-Forwarded-Host: ${forwardedHost === '' ? host : forwardedHost}\r\n`;
  if (traceparent !== undefined) text += `${TRACEPARENT}: ${traceparent}\r\n`;
  if (prefix !== '') text += `X-Forwarded-Prefix: ${prefix}\r\n`;
  if (upgrade !== undefined) text += `Connection: Upgrade\r\nUpgrade: ${upgrade}\r\n`;
  return { text: `${text}\r\n`, length };
}

/**
 * The headers of a worker's response as the client gets them. It has the id of the request, unless the worker
 * gave it one of its own.
 */
export function clientResponseHeaders(
  { headers }: UpstreamResponseHead,
  workerId: string | undefined,
  { prefix }: ForwardedPath,
  host: string | undefined,
  requestId: string,
): RawHeaders {
  const named = namedByConnection(headers);
  let hasRequestId = false;
  const kept: RawHeaders = workerId === undefined ? [] : [WORKER_HEADER, workerId];
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at] as string;
    const value = headers[at + 1] as string;
    const lower = name.toLowerCase();
    if (
      HOP_BY_HOP.has(lower) ||
      lower === 'transfer-encoding' ||
      lower === WORKER_HEADER_LOWER ||
      // It would let a script of the page answer for other addresses of this origin.
      (lower === 'service-worker-allowed' && prefix !== '') ||
      named?.has(lower) === true
    )
      continue;
    hasRequestId ||= lower === REQUEST_ID_LOWER;
    kept.push(
      name,
      prefix === ''
        ? value
        : lower === 'location'
          ? prefixLocation(value, prefix, host)
          : lower === 'set-cookie'
            ? prefixCookiePath(value, prefix)
            : value,
    );
  }
  if (!hasRequestId) kept.push(REQUEST_ID_HEADER, requestId);
  return kept;
}

/** The head of a 101 response, unchanged except for the ids of the worker and the request. */
export function upgradeResponseHead(
  { message, headers }: UpstreamResponseHead,
  workerId: string | undefined,
  requestId: string,
): string {
  let hasRequestId = false;
  let text = `HTTP/1.1 101 ${message}\r\n${workerId === undefined ? '' : `${WORKER_HEADER}: ${workerId}\r\n`}`;
  for (let at = 0; at < headers.length; at += 2) {
    const lower = headers[at]?.toLowerCase();
    hasRequestId ||= lower === REQUEST_ID_LOWER;
    if (lower !== WORKER_HEADER_LOWER) text += `${headers[at]}: ${headers[at + 1]}\r\n`;
  }
  if (!hasRequestId) text += `${REQUEST_ID_HEADER}: ${requestId}\r\n`;
  return `${text}\r\n`;
}

/** Headers that the Connection header names are not forwarded either. Few messages name any. */
function namedByConnection(rawHeaders: readonly string[]): Set<string> | undefined {
  let named: Set<string> | undefined;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    if (name.length !== 10 || name.toLowerCase() !== 'connection') continue;
    for (const part of (rawHeaders[at + 1] as string).split(',')) {
      const word = part.trim().toLowerCase();
      if (word !== '' && word !== 'keep-alive' && word !== 'close' && word !== 'upgrade')
        (named ??= new Set()).add(word);
    }
  }
  return named;
}
