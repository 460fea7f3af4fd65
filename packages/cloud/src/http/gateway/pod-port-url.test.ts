import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { prefixCookiePath } from './cookie-path.ts';
import { WildcardDomain } from './wildcard-domain.ts';
import { parsePodPortHost, parsePodPortPath } from './pod-port-url.ts';

describe("the address of a pod's port", () => {
  test('by path: the id, the port, and what the pod sees', () => {
    assert.deepEqual(parsePodPortPath('/proxy/abc123-8000/a/b?c=/d'), {
      podId: 'abc123',
      port: 8000,
      path: '/a/b?c=/d',
      prefix: '/proxy/abc123-8000',
    });
    assert.deepEqual(parsePodPortPath('/proxy/abc123-70001?x'), {
      podId: 'abc123',
      port: 70_001,
      path: '?x',
      prefix: '/proxy/abc123-70001',
    });
    for (const url of [
      '/proxy/',
      '/proxy/abc123',
      '/proxy/abc123-',
      '/proxy/abc123-0/',
      '/proxy/-80/',
      '/proxy/a-b-80/',
      '/proxy/..-80/',
      '/proxy/abc-1234567/',
      '/proxy/%61-80/',
    ])
      assert.equal(parsePodPortPath(url), 'malformed', url);
    for (const url of ['/', '/proxy', '/v2/pods', '/proxying/abc-80/'])
      assert.equal(parsePodPortPath(url), undefined, url);
  });

  test('by host name: only below the domain, in any case, with any port', () => {
    const domain = new WildcardDomain('example.org');
    const found = { podId: 'abc123', port: 8000, path: '/v2/pods', prefix: '' };
    assert.deepEqual(parsePodPortHost('ABC123-8000.Example.org:8484', '/v2/pods', domain), found);
    for (const host of [
      undefined,
      'example.org',
      'abc123.example.org',
      'abc123-8000.example.com',
      'x.abc123-8000.example.org',
      'abc123-8000.evil-example.org',
    ])
      assert.equal(parsePodPortHost(host, '/', domain), undefined, host);
    assert.equal(parsePodPortHost('abc123-8000.', '/', new WildcardDomain('')), undefined);
  });

  test('a cookie stays below the prefix', () => {
    const prefix = '/proxy/abc-80';
    const cases = [
      ['a=1; Path=/', 'a=1; Path=/proxy/abc-80/'],
      ['a=1; path=/sub; Secure', 'a=1; Path=/proxy/abc-80/sub; Secure'],
      ['a=1', 'a=1'],
      ['a=1; Path=/proxy/abc-80/x', 'a=1; Path=/proxy/abc-80/x'],
      ['a=1; Path=', 'a=1; Path=/proxy/abc-80/'],
    ] as const;
    for (const [cookie, expected] of cases) assert.equal(prefixCookiePath(cookie, prefix), expected);
  });
});
