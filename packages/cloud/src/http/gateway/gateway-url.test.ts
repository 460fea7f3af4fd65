import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseEndpointHost, endpointIdFromHost, parseEndpointPath } from './gateway-url.ts';
import { parseWorkerAffinity } from './worker-affinity.ts';
import { WildcardDomain } from './wildcard-domain.ts';
import { prefixLocation } from './redirect-location.ts';

describe('the address of an endpoint', () => {
  test("by path: what follows the endpoint is the worker's, as it is", () => {
    const cases: [string, string, string][] = [
      ['/v2/abc', 'abc', '/'],
      ['/v2/abc/', 'abc', '/'],
      ['/v2/abc?x=1', 'abc', '/?x=1'],
      ['/v2/abc/a/b?c=/d', 'abc', '/a/b?c=/d'],
      ['/v2/abc//', 'abc', '//'],
      ['/v2/abc/../x', 'abc', '/../x'],
    ];
    for (const [url, endpointId, path] of cases)
      assert.deepEqual(parseEndpointPath(url), { endpointId, path, prefix: '/v2/abc' });
  });

  test('an id may be written in percent signs; the worker and the prefix get what was sent', () => {
    assert.deepEqual(parseEndpointPath('/v2/%61b%63/a%20b?c=%2F'), {
      endpointId: 'abc',
      path: '/a%20b?c=%2F',
      prefix: '/v2/%61b%63',
    });
    assert.equal(parseEndpointPath('/v2/%73erverless/abc'), undefined);
    for (const unreadable of ['%zz', '%00', 'a%0Ab', '%C2%85'])
      assert.equal(parseEndpointPath(`/v2/${unreadable}/x`)?.endpointId, unreadable);
  });

  test('a base address with a slash at its end makes two of them', () => {
    assert.deepEqual(parseEndpointPath('/v2//abc/a//b'), {
      endpointId: 'abc',
      path: '/a//b',
      prefix: '/v2//abc',
    });
  });

  test('what is no endpoint is left to others', () => {
    for (const url of [
      '/',
      '/v2',
      '/v2/',
      '/v2//',
      '/v2/?x',
      '/v2//pods/x',
      '/v1/abc',
      '/v2/pods/x',
      '/v2/serverless',
      '/v2/openapi.json',
      '/v2/docs?x',
      '/graphql',
    ])
      assert.equal(parseEndpointPath(url), undefined, url);
  });

  test('by host name, where a domain is set up', () => {
    const domain = new WildcardDomain('berth.test');
    for (const host of ['abc123.berth.test', 'ABC123.Berth.Test:8484'])
      assert.equal(endpointIdFromHost(host, domain), 'abc123');
    for (const host of [
      undefined,
      '',
      'berth.test',
      'a.b.berth.test',
      'pod-8080.berth.test',
      'abc.other.test',
      'abcberth.test',
      '.berth.test',
      'abc.berth.test.evil',
    ])
      assert.equal(endpointIdFromHost(host, domain), undefined, host);
    assert.equal(endpointIdFromHost('abc.berth.test', new WildcardDomain('')), undefined);
    assert.deepEqual(parseEndpointHost('abc.berth.test', '/v2/x?y', domain), {
      endpointId: 'abc',
      path: '/v2/x?y',
      prefix: '',
    });
  });
});

test('affinity is an id, alone or strict', () => {
  assert.equal(parseWorkerAffinity(undefined), undefined);
  assert.equal(parseWorkerAffinity(''), undefined);
  assert.equal(parseWorkerAffinity('loose w1'), undefined);
  assert.deepEqual(parseWorkerAffinity('w1'), { kind: 'prefer', workerId: 'w1' });
  assert.deepEqual(parseWorkerAffinity(' STRICT  w1 '), { kind: 'strict', workerId: 'w1' });
  assert.deepEqual(parseWorkerAffinity('strict-resume w1'), { kind: 'strict-resume', workerId: 'w1' });
});

test('a redirect of a worker stays with the worker', () => {
  const cases: [string, string][] = [
    ['/there', '/v2/e/there'],
    ['/', '/v2/e/'],
    ['/v2/e/there', '/v2/e/there'],
    ['/v2/e', '/v2/e'],
    ['/v2/else', '/v2/e/v2/else'],
    ['there', 'there'],
    ['?x', '?x'],
    ['//cdn/x', '//cdn/x'],
    ['http://h:1/there', 'http://h:1/v2/e/there'],
    ['HTTPS://H:1', 'HTTPS://H:1/v2/e/'],
    ['http://other/there', 'http://other/there'],
    ['mailto:x', 'mailto:x'],
  ];
  for (const [location, expected] of cases) assert.equal(prefixLocation(location, '/v2/e', 'h:1'), expected);
});
