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

describe('a plain head', () => {
  test('is read whole, names in small letters', () => {
    assert.deepEqual(parseFastPathHead(head(...plain)), {
      method: 'POST',
      url: '/v2/e1/run?x=1',
      headers: { host: 'berth', authorization: 'Bearer k', 'content-length': '12' },
      length: 12,
      last: false,
    });
  });

  test('has values without the space around them, and with any other sign', () => {
    assert.deepEqual(parseFastPathHead(head(...plain, 'X-Odd: \t a b\xa0 \t'))?.headers['x-odd'], 'a b\xa0');
  });

  test('needs no body, and may ask for the end of the connection', () => {
    const { length, last } =
      parseFastPathHead(head('GET /v2/e1/health HTTP/1.1', 'Host: b', 'Connection: Close')) ?? {};
    assert.deepEqual([length, last], [0, true]);
  });
});

describe('left to Node is', () => {
  const cases: Record<string, string[]> = {
    'another method': ['PUT /v2/e1/run HTTP/1.1', 'Host: b'],
    'another version': ['GET /v2/e1/run HTTP/1.0', 'Host: b'],
    'a whole address': ['GET http://b/v2/e1/run HTTP/1.1', 'Host: b'],
    'an address with a space': ['GET /v2/e1/ run HTTP/1.1', 'Host: b'],
    'an address with more than ASCII': ['GET /v2/e1/r\xfcn HTTP/1.1', 'Host: b'],
    'an address with a tab': ['GET /v2/e1/r\tun HTTP/1.1', 'Host: b'],
    'a length with a space that HTTP does not know': ['POST / HTTP/1.1', 'Host: b', 'Content-Length: 11\xa0'],
    'a request without a host': ['GET /v2/e1/run HTTP/1.1'],
    'a body in pieces': [...plain, 'Transfer-Encoding: chunked'],
    'a length twice': [...plain, 'content-length: 12'],
    'a length that is none': ['POST / HTTP/1.1', 'Host: b', 'Content-Length: 1,2'],
    'a length with a sign': ['POST / HTTP/1.1', 'Host: b', 'Content-Length: +5'],
    'a body of a GET': ['GET / HTTP/1.1', 'Host: b', 'Content-Length: 5'],
    'a wish to go on': [...plain, 'Expect: 100-continue'],
    'another protocol': [...plain, 'Connection: Upgrade', 'Upgrade: websocket'],
    'a line that goes on': [...plain, ' more'],
    'a name with a space': [...plain, 'X-Odd : 1'],
    'a name that is empty': [...plain, ': 1'],
    'a line without a colon': [...plain, 'nothing'],
    'a line end of one sign': [...plain, 'X-Odd: a\nTransfer-Encoding: chunked'],
    'a control character': [...plain, 'X-Odd: a\0b'],
  };
  for (const [what, lines] of Object.entries(cases))
    test(what, () => assert.equal(parseFastPathHead(head(...lines)), undefined));
});
