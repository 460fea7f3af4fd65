import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseFastPathHead } from './fast-path-head.ts';

const head = (...lines: string[]): string => lines.map((line) => `${line}\r\n`).join('');
const plain = [
  'POST /v2/e1/run?x=1 HTTP/1.1',
  'Host: berth',
  'Authorization: Bearer k',
  'Content-Length: 12',
];

describe('a plain request head', () => {
  test('is parsed whole, with header names in lower case', () => {
    assert.deepEqual(parseFastPathHead(head(...plain)), {
      method: 'POST',
      url: '/v2/e1/run?x=1',
      headers: { host: 'berth', authorization: 'Bearer k', 'content-length': '12' },
      length: 12,
      closesConnection: false,
    });
  });

  test('has values without surrounding white space, and with every other character', () => {
    assert.deepEqual(parseFastPathHead(head(...plain, 'X-Odd: \t a b\xa0 \t'))?.headers['x-odd'], 'a b\xa0');
  });

  test('may have names that were never sent before, however many, and in any case', () => {
    for (let number = 0; number < 500; number += 1) {
      const names = [`X-New-${number}`, `x-NEW-${number}`, 'X'.repeat(51 + number)];
      for (const name of names)
        assert.equal(parseFastPathHead(head(...plain, `${name}: 1`))?.headers[name.toLowerCase()], '1');
    }
  });

  test('needs no body, and may close the connection', () => {
    const { length, closesConnection } =
      parseFastPathHead(head('GET /v2/e1/health HTTP/1.1', 'Host: b', 'Connection: Close')) ?? {};
    assert.deepEqual([length, closesConnection], [0, true]);
  });
});

describe('the fast path leaves to Node', () => {
  const cases: Record<string, string[]> = {
    'another method': ['PUT /v2/e1/run HTTP/1.1', 'Host: b'],
    'another version': ['GET /v2/e1/run HTTP/1.0', 'Host: b'],
    'an absolute URL': ['GET http://b/v2/e1/run HTTP/1.1', 'Host: b'],
    'a path with a space': ['GET /v2/e1/ run HTTP/1.1', 'Host: b'],
    'a path with more than ASCII': ['GET /v2/e1/r\xfcn HTTP/1.1', 'Host: b'],
    'a path with a tab': ['GET /v2/e1/r\tun HTTP/1.1', 'Host: b'],
    'a length with white space that HTTP does not know': [
      'POST / HTTP/1.1',
      'Host: b',
      'Content-Length: 11\xa0',
    ],
    'a request without a host': ['GET /v2/e1/run HTTP/1.1'],
    'a chunked body': [...plain, 'Transfer-Encoding: chunked'],
    'a length twice': [...plain, 'content-length: 12'],
    'a length that is not a number': ['POST / HTTP/1.1', 'Host: b', 'Content-Length: 1,2'],
    'a length with a sign': ['POST / HTTP/1.1', 'Host: b', 'Content-Length: +5'],
    'a body of a GET': ['GET / HTTP/1.1', 'Host: b', 'Content-Length: 5'],
    'Expect: 100-continue': [...plain, 'Expect: 100-continue'],
    'an upgrade': [...plain, 'Connection: Upgrade', 'Upgrade: websocket'],
    'a folded line': [...plain, ' more'],
    'a name with a space': [...plain, 'X-Odd : 1'],
    'an empty name': [...plain, ': 1'],
    'a line without a colon': [...plain, 'nothing'],
    'a bare line feed': [...plain, 'X-Odd: a\nTransfer-Encoding: chunked'],
    'the connection header of old proxies': [...plain, 'Proxy-Connection: close'],
    'very many headers': [...plain, ...Array.from({ length: 100 }, (_, number) => `X-${number}: 1`)],
    'a control character': [...plain, 'X-Odd: a\0b'],
  };
  for (const [what, lines] of Object.entries(cases))
    test(what, () => assert.equal(parseFastPathHead(head(...lines)), undefined));
});
