import assert from 'node:assert/strict';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { test } from 'node:test';
import { convertToOriginForm } from './request-target.ts';

function taken(url: string, rawHeaders: string[]): [string | undefined, string | undefined, string[]] {
  const request = new IncomingMessage(new Socket());
  request.url = url;
  request.rawHeaders = rawHeaders;
  if (rawHeaders.length > 0) request.headers = { host: 'said' };
  convertToOriginForm(request);
  return [request.url, request.headers.host, request.rawHeaders];
}

test('a target with scheme and host becomes a path, and its host the one that counts', () => {
  const cases: [string, string, string][] = [
    ['http://h/v2/e/run?x=http://y/', '/v2/e/run?x=http://y/', 'h'],
    ['HTTPS://H:1//a', '//a', 'H:1'],
    ['http://[::1]:8484/a', '/a', '[::1]:8484'],
    ['http://h', '/', 'h'],
    ['http://h?x', '/?x', 'h'],
    ['http://name:word@h/a', '/a', 'h'],
  ];
  for (const [url, path, host] of cases)
    assert.deepEqual(
      taken(url, ['A', 'host', 'hOST', 'said']),
      [path, host, ['A', 'host', 'hOST', host]],
      url,
    );
  assert.deepEqual(taken('http://h/a', []), ['/a', 'h', ['Host', 'h']]);
});

test('any other target stays as it is', () => {
  for (const url of ['/', '/http://h/a', '*', '', 'h:443', 'http://', 'http:///a', 'ftp://h/a', '//h/a'])
    assert.deepEqual(taken(url, ['Host', 'said']), [url, 'said', ['Host', 'said']], url);
});
