import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { checkProperty } from '../../../../../testing/src/property-testing.ts';
import { BadUpstreamResponse, UpstreamResponseParser } from './upstream-response-parser.ts';
import type { RawHeaders, UpstreamResponseHead } from './upstream-response-parser.ts';

interface Parsed {
  heads: UpstreamResponseHead[];
  body: string;
  trailers: RawHeaders | undefined;
  reusable: boolean;
}

/** Parses a response that arrives in these pieces. */
function read(pieces: readonly Buffer[], { method = 'GET', closes = false } = {}): Parsed {
  const parser = new UpstreamResponseParser();
  const body: Buffer[] = [];
  const parsed: Parsed = { heads: [], body: '', trailers: undefined, reusable: false };
  parser.begin(method, {
    head: (head) => void parsed.heads.push(head),
    data: (chunk) => void body.push(Buffer.from(chunk)),
    end: (trailers) => (parsed.trailers = trailers),
  });
  for (const piece of pieces) parser.feed(piece);
  if (closes) parser.close();
  return { ...parsed, body: Buffer.concat(body).toString('latin1'), reusable: parser.reusable };
}

const whole = (text: string, options?: { method?: string; closes?: boolean }): Parsed =>
  read([Buffer.from(text, 'latin1')], options);
const refused = (text: string, why: RegExp): void =>
  assert.throws(
    () => whole(text),
    (error: unknown) => error instanceof BadUpstreamResponse && why.test(error.message),
    JSON.stringify(text),
  );

describe('the parser of upstream responses', () => {
  test('reads a body of known length, and then another response', () => {
    const parsed = whole('HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A:  b \t\r\nX-Empty:\r\n\r\nhello');
    assert.deepEqual(parsed.heads, [
      { status: 200, message: 'OK', headers: ['Content-Length', '5', 'X-A', 'b', 'X-Empty', ''], length: 5 },
    ]);
    assert.deepEqual([parsed.body, parsed.trailers, parsed.reusable], ['hello', [], true]);
  });

  test('reads chunks with extensions and trailers', () => {
    const parsed = whole(
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n5;a=b\r\nhello\r\nA \r\n, and more\r\n' +
        '000\r\nX-Sum: 1\r\nX-B: 2\r\n\r\n',
    );
    assert.deepEqual(
      [parsed.body, parsed.trailers, parsed.reusable],
      ['hello, and more', ['X-Sum', '1', 'X-B', '2'], true],
    );
  });

  test('reads to the end of the connection if no length is given', () => {
    const open = whole('HTTP/1.1 200 OK\r\n\r\nall of it');
    assert.deepEqual([open.body, open.trailers, open.reusable], ['all of it', undefined, false]);
    const parsed = whole('HTTP/1.1 200 OK\r\n\r\nall of it', { closes: true });
    assert.deepEqual([parsed.body, parsed.trailers, parsed.reusable], ['all of it', [], false]);
    assert.equal(
      whole('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart', { closes: true }).trailers,
      undefined,
    );
  });

  test('knows the responses without a body', () => {
    for (const status of [204, 304])
      assert.deepEqual(whole(`HTTP/1.1 ${status} X\r\nContent-Length: 9\r\n\r\n`).trailers, []);
    assert.deepEqual(whole('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n', { method: 'HEAD' }).trailers, []);
    assert.deepEqual(
      whole('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', { method: 'HEAD' }).trailers,
      [],
    );
    assert.deepEqual(whole('HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n').trailers, []);
  });

  test('skips interim responses', () => {
    const parsed = whole(
      'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n' +
        'Content-Length: 2\r\n\r\nok',
    );
    assert.deepEqual([parsed.heads.length, parsed.heads[0]?.status, parsed.body], [1, 200, 'ok']);
  });

  test('reuses a connection only if the worker keeps it', () => {
    assert.equal(
      whole('HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\n\r\n')
        .reusable,
      true,
    );
    assert.equal(whole('HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: Close\r\n\r\n').reusable, false);
    assert.equal(
      whole('HTTP/1.1 200 OK\r\nContent-Length: 0\r\nKeep-Alive: timeout=1\r\n\r\n').reusable,
      false,
    );
    assert.equal(
      whole('HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n').reusable,
      false,
    );
  });

  test('refuses what two parsers could understand differently', () => {
    refused('HTTP/1.1 200 OK\nContent-Length: 0\n\n\r\n\r\n', /status line/);
    refused('HTTP/1.1  200 OK\r\n\r\n', /status line/);
    refused('http/1.1 200 OK\r\n\r\n', /status line/);
    refused('HTTP/1.1 99 OK\r\n\r\n', /status line/);
    refused('HTTP/1.1 200 OK\r\nContent-Length : 1\r\n\r\nx', /not valid/);
    refused('HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n', /not valid/);
    refused('HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n', /not valid/);
    refused('HTTP/1.1 200 OK\r\nno colon\r\n\r\n', /not valid/);
    refused('HTTP/1.1 200 OK\r\nX: a\r\n folded\r\n\r\n', /not valid/);
    for (const length of ['+1', '1, 1', '0x1', '', '1.0', '1e1', '9'.repeat(30)])
      refused(`HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n`, /Content-Length/);
    refused('HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx', /Content-Length/);
    for (const encoding of ['gzip, chunked', 'identity', 'chunked, chunked', 'xchunked'])
      refused(`HTTP/1.1 200 OK\r\nTransfer-Encoding: ${encoding}\r\n\r\n`, /Transfer-Encoding/);
    refused('HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n', /both/);
    for (const size of ['2;\x00=b', '', 'x', '-1', '0x5', '5 5', '123456789'])
      refused(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${size}\r\n`, /size of a chunk/);
    refused('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n', /CR LF|longer/);
    refused('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\nab\r\n', /CR LF/);
    refused('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP', /more than its response/);
    refused(`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(140_000)}`, /larger than/);
    refused(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;${'x'.repeat(5000)}`, /too long/);
    refused(
      `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n${`X: ${'x'.repeat(4000)}\r\n`.repeat(40)}`,
      /trailers are larger/,
    );
  });

  test('parses the same in whatever pieces a response arrives', () => {
    const token = fc
      .stringMatching(/^[A-Za-z-]{1,20}$/)
      .filter((name) => !/^(content-length|transfer-encoding|connection|keep-alive)$/i.test(name));
    const value = fc.stringMatching(/^[!-~]([ -~]{0,30}[!-~])?$/);
    const fields = fc.array(fc.tuple(token, value), { maxLength: 6 });
    const response = fc.record({
      status: fc.integer({ min: 200, max: 599 }).filter((status) => status !== 204 && status !== 304),
      headers: fields,
      chunks: fc.array(fc.uint8Array({ minLength: 1, maxLength: 300 }), { maxLength: 8 }),
      framing: fc.constantFrom('length', 'chunked', 'close'),
      trailers: fields,
      interim: fc.boolean(),
    });
    return checkProperty(
      fc.property(
        response,
        fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }),
        ({ status, headers, chunks, framing, trailers, interim }, sizes) => {
          const body = Buffer.concat(chunks);
          const lines = (list: [string, string][]): string =>
            list.map(([name, text]) => `${name}: ${text}\r\n`).join('');
          const framed =
            framing === 'length'
              ? `Content-Length: ${body.length}\r\n`
              : framing === 'chunked'
                ? 'Transfer-Encoding: chunked\r\n'
                : '';
          const bytes = Buffer.concat([
            Buffer.from(
              `${interim ? 'HTTP/1.1 100 Continue\r\n\r\n' : ''}HTTP/1.1 ${status} Words\r\n` +
                `${lines(headers)}${framed}\r\n`,
            ),
            ...(framing === 'chunked'
              ? [
                  ...chunks.flatMap((chunk) => [
                    Buffer.from(`${chunk.length.toString(16)}\r\n`),
                    Buffer.from(chunk),
                    Buffer.from('\r\n'),
                  ]),
                  Buffer.from(`0\r\n${lines(trailers)}\r\n`),
                ]
              : [body]),
          ]);
          const pieces: Buffer[] = [];
          for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
            const size = sizes[turn % sizes.length] ?? 1;
            pieces.push(bytes.subarray(at, at + size));
            at += size;
          }
          const parsed = read(pieces, { closes: framing === 'close' });
          assert.equal(parsed.heads.length, 1);
          assert.equal(parsed.heads[0]?.status, status);
          assert.deepEqual(parsed.heads[0]?.headers.slice(0, headers.length * 2), headers.flat());
          assert.equal(parsed.body, body.toString('latin1'));
          assert.deepEqual(parsed.trailers, framing === 'chunked' ? trailers.flat() : []);
          assert.equal(parsed.reusable, framing !== 'close');
        },
      ),
    );
  });
});
