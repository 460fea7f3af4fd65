import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Request } from '../raw-http.ts';
import { ownHostUrl } from './page-isolation.ts';
import { WildcardDomain } from './wildcard-domain.ts';

const PAGE = { label: 'abc-8000', path: '/lab?x=1', prefix: '/proxy/abc-8000' };
const NAVIGATION = { accept: 'text/html,*/*', 'sec-fetch-mode': 'navigate' };

function urlOf(
  headers: Record<string, string>,
  domain = '',
  page = PAGE,
  method = 'GET',
): string | undefined {
  return ownHostUrl({ method, headers } as unknown as Request, page, new WildcardDomain(domain));
}

test('a browser on this machine is sent to a host name of the pod', () => {
  for (const host of ['localhost:8484', '127.0.0.1:8484', '[::1]:8484'])
    assert.equal(urlOf({ ...NAVIGATION, host }), '//abc-8000.localhost:8484/lab?x=1');
});

test('where a domain is set, its names are used', () => {
  assert.equal(
    urlOf({ ...NAVIGATION, host: 'berth.example' }, 'Pods.example'),
    '//abc-8000.pods.example/lab?x=1',
  );
});

test('without a name, and for whatever is not the page of a browser, the address stays', () => {
  assert.equal(urlOf({ ...NAVIGATION, host: '10.0.0.7:8484' }), undefined);
  assert.equal(urlOf({ accept: '*/*', host: 'localhost' }), undefined);
  assert.equal(urlOf({ ...NAVIGATION, 'sec-fetch-mode': 'cors', host: 'localhost' }), undefined);
  assert.equal(urlOf({ ...NAVIGATION, host: 'localhost' }, '', PAGE, 'POST'), undefined);
  assert.equal(urlOf({ ...NAVIGATION, host: 'localhost' }, '', { ...PAGE, prefix: '' }), undefined);
});
