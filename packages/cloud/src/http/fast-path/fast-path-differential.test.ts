import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingHttpHeaders, Server } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { casesTried, checkProperty } from '../../../../testing/src/property-testing.ts';
import { sendJson } from '../raw-http.ts';
import { FastPathServer } from './fast-path-server.ts';

interface SeenRequest {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  /** Undefined if it did not arrive whole. */
  body: string | undefined;
}

interface Outcome {
  seen: SeenRequest[];
  /** Of the responses, in order. */
  statuses: number[];
}

/** A server that records what it sees. Connections are used one at a time. */
interface Recorder {
  server: Server;
  seen: SeenRequest[];
  /** How many of them the fast path served. */
  fast: number;
}

function record(server: Server, recorder: Recorder): Recorder {
  server.on('request', (request, response) => {
    const { method = '', url = '', headers } = request;
    const seen: SeenRequest = { method, url, headers, body: undefined };
    recorder.seen.push(seen);
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => (body += text));
    request.on('error', () => undefined);
    request.on('end', () => {
      seen.body = body;
      sendJson(response, 200, '{}');
    });
  });
  return recorder;
}

function nodeServer(): Recorder {
  const server = createServer();
  return record(server, { server, seen: [], fast: 0 });
}

function fastPathServer(): Recorder {
  const server: FastPathServer = new FastPathServer(
    {},
    {
      accepts: () => true,
      serveFastPath: ({ method, url, headers, body }, response) => {
        recorder.seen.push({ method, url, headers, body });
        recorder.fast += 1;
        sendJson(response, 200, '{}');
      },
      closing: false,
    },
  );
  const recorder: Recorder = { server, seen: [], fast: 0 };
  return record(server, recorder);
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/**
 * Sends the pieces one by one, ends the connection when nothing happens any more, and waits until it is
 * closed.
 */
async function play(recorder: Recorder, pieces: readonly Buffer[]): Promise<Outcome> {
  recorder.seen = [];
  const socket = connect((recorder.server.address() as AddressInfo).port, '127.0.0.1');
  socket.setNoDelay(true);
  let received = '';
  socket.setEncoding('latin1').on('data', (text: string) => (received += text));
  socket.on('error', () => undefined);
  const closed = once(socket, 'close').catch(() => undefined);
  await once(socket, 'connect');
  const state = (): string => `${received.length} ${JSON.stringify(recorder.seen)}`;
  for (const piece of pieces) {
    if (socket.destroyed) break;
    socket.write(piece);
    for (let turns = 0; turns < 3; turns += 1) await turn();
  }
  let last = state();
  for (let turns = 0; turns < 20; turns += 1) {
    await turn();
    if (state() === last) continue;
    last = state();
    turns = 0;
  }
  socket.end();
  await closed;
  const statuses = [...received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
  return { seen: recorder.seen, statuses };
}

const isRefused = ({ statuses }: Outcome): boolean => statuses.some((status) => status >= 400);

const METHODS = ['GET', 'POST', 'PUT', 'get', 'HEAD', 'OPTIONS', 'POST\t', 'GE\0T'];
const TARGETS = [
  '/v2/e/run',
  '/v2/e/run?x=1&y=%20',
  '/v2/e/status/"<>\\^`{|}~[]',
  '/v2/e/run#part',
  '/v2/é',
  '/v2/e run',
  '/v2//e/run',
  '/v1/pods',
  '*',
  'http://other/v2/e/run',
  '/v2/\x7f',
  '',
];
const VERSIONS = ['HTTP/1.1', 'HTTP/1.0', 'HTTP/2.0', 'http/1.1', 'HTTP/1.1 ', 'HTTP/1.', 'HTTP/9.9'];
const HEADERS = [
  'Host: x',
  'Host:',
  'host : x',
  'Connection: close',
  'Connection: keep-alive',
  'Connection: Keep-Alive, X-Hop',
  'Connection: upgrade',
  'Proxy-Connection: close',
  'Upgrade: websocket',
  'Content-Length: 0',
  'Content-Length: 3',
  'Content-Length: 003',
  'Content-Length: 3, 3',
  'Content-Length: +3',
  'Content-Length: 0x3',
  'Content-Length: -1',
  'Content-Length: 99999999999999999999',
  'Content-Length:3\t ',
  'Content-Length: 3\x0b',
  'Content-Length: 3\xa0',
  'Content-Length:',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: identity',
  'Transfer-Encoding: gzip, chunked',
  'Transfer-Encoding : chunked',
  'Expect: 100-continue',
  'TE: trailers',
  'Trailer: X-Sum',
  'Authorization: Bearer key',
  'Authorization: Bearer other',
  'Cookie: a=1',
  'Cookie: b=2',
  'X-Latin: \xe9\xff',
  'X-Tab: a\tb',
  'X-Null: a\0b',
  'X-Control: a\x01b',
  'X-Return: a\rb',
  'X-Delete: a\x7fb',
  ' folded: x',
  '\tfolded: x',
  ': empty',
  'no colon',
  'X-Empty:',
  'X(Bad): 1',
  '__proto__: x',
  'constructor: x',
  `X-Long: ${'x'.repeat(17_000)}`,
];
const BODIES = ['', '{}', 'abc', 'abcd', '3\r\nabc\r\n0\r\n\r\n', 'é', '\xff\xfe', '\r\n', 'GET'];
const LINE_ENDS = ['\r\n', '\n', '\r', '\r\r\n'];

/** Mostly the first choice, so that most streams have one oddity and not ten. */
const mostly = <T>(usual: T, ...odd: readonly T[]): fc.Arbitrary<T> =>
  fc.oneof({ weight: 12, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: fc.constantFrom(...odd) });

const plainRequest = fc
  .record({
    method: fc.constantFrom('GET', 'POST'),
    path: fc.stringMatching(/^[!-"$->@-~]{0,20}$/),
    value: fc.stringMatching(/^[ -~\x80-\xff]{0,20}$/),
    body: fc.stringMatching(/^[ -~]{0,40}$/),
  })
  .map(({ method, path, value, body }) => {
    const length = method === 'POST' ? `Content-Length: ${body.length}\r\n` : '';
    const content = method === 'POST' ? body : '';
    return `${method} /v2/${path} HTTP/1.1\r\nHost: x\r\nX-Value: ${value}\r\n${length}\r\n${content}`;
  });

const oddRequest = fc
  .record({
    method: mostly('POST', ...METHODS),
    target: mostly('/v2/e/run', ...TARGETS),
    version: mostly('HTTP/1.1', ...VERSIONS),
    host: mostly('Host: x', 'Host: y', 'X-No-Host: x'),
    headers: fc.array(fc.constantFrom(...HEADERS), { maxLength: 3 }),
    lineEnd: mostly('\r\n', ...LINE_ENDS),
    headEnd: mostly('\r\n', ...LINE_ENDS, ''),
    before: mostly('', '\r\n', '\n', ' ', '\0', 'x'),
    body: fc.constantFrom(...BODIES),
  })
  .map(
    ({ method, target, version, host, headers, lineEnd, headEnd, before: prefix, body }) =>
      `${prefix}${method} ${target} ${version}\r\n` +
      `${[host, ...headers].map((header) => header + lineEnd).join('')}${headEnd}${body}`,
  );

/** A few requests after each other, perhaps with some bytes changed, in pieces of any size. */
const stream = fc
  .record({
    requests: fc.array(fc.oneof(plainRequest, oddRequest), { minLength: 1, maxLength: 3 }),
    changes: mostly<readonly { at: number; byte: number }[]>([], [{ at: 7, byte: 32 }]).chain((usual) =>
      fc.oneof(
        { weight: 4, arbitrary: fc.constant(usual) },
        {
          weight: 1,
          arbitrary: fc.array(fc.record({ at: fc.nat(400), byte: fc.nat(255) }), { maxLength: 3 }),
        },
      ),
    ),
    sizes: fc.oneof(
      fc.constant([1_000_000]),
      fc.array(fc.integer({ min: 20, max: 200 }), { minLength: 1, maxLength: 5 }),
    ),
  })
  .map(({ requests, changes, sizes }) => {
    const bytes = Buffer.from(requests.join(''), 'latin1');
    for (const { at, byte } of changes) if (at < bytes.length) bytes[at] = byte;
    const pieces: Buffer[] = [];
    for (let at = 0, next = 0; at < bytes.length; next += 1) {
      // Very many pieces would only take time.
      const size = pieces.length > 30 ? bytes.length : (sizes[next % sizes.length] ?? 1);
      pieces.push(bytes.subarray(at, at + size));
      at += size;
    }
    return pieces;
  });

const RUNS = 1_000;

describe("the fast path and Node's parser", () => {
  const node = nodeServer();
  const fastPath = fastPathServer();

  before(async () => {
    for (const { server } of [node, fastPath]) {
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
    }
  });
  after(() => {
    for (const { server } of [node, fastPath]) {
      server.closeAllConnections();
      server.close();
    }
  });

  test('see the same requests in the same bytes, and refuse the same', async () => {
    await checkProperty(
      fc.asyncProperty(stream, async (pieces) => {
        const expected = await play(node, pieces);
        const actual = await play(fastPath, pieces);
        const text = JSON.stringify(Buffer.concat(pieces).toString('latin1'));
        assert.equal(isRefused(actual), isRefused(expected), `refused: ${text}`);
        assert.ok(actual.seen.length <= expected.seen.length, text);
        for (const [index, { body, ...head }] of expected.seen.entries()) {
          const { body: otherBody, ...otherHead } = actual.seen[index] ?? { body: undefined };
          // The fast path does not see a request before its body is there, and Node sees its head.
          if (index < actual.seen.length || body !== undefined) assert.deepEqual(otherHead, head, text);
          // When Node refuses a request, it drops earlier ones of the connection that it has not answered
          // yet.
          if (!isRefused(expected) || (body !== undefined && otherBody !== undefined))
            assert.equal(otherBody, body, text);
        }
        // Of several requests with faults, Node may refuse a later one first.
        if (!isRefused(expected) || expected.seen.length === 0)
          assert.deepEqual(actual.statuses, expected.statuses, text);
      }),
      RUNS,
    );
    const cases = casesTried(RUNS);
    // The comparison says something only if the fast path serves a good part.
    assert.ok(
      fastPath.fast > cases * 0.3,
      `the fast path served ${fastPath.fast} requests in ${cases} cases`,
    );
  });
});
