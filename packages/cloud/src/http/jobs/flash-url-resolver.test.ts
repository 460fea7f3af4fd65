import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FlashApps } from '../../resources/flash/flash-apps.ts';
import type { Authenticator } from '../../auth/authenticator.ts';
import type { Request } from '../raw-http.ts';
import { FlashUrlResolver } from './flash-url-resolver.ts';

const authenticator = { authenticate: async () => ({ accountId: 'ann' }) } as unknown as Authenticator;
const flash = { findEndpointId: async () => 'e1' } as unknown as FlashApps;
const addresses = new FlashUrlResolver(authenticator, flash);
const headers = { 'x-flash-app': 'app', 'x-flash-environment': 'production', 'x-flash-endpoint': 'answers' };

test('what is called by names is an address of the endpoint that has them, also with two slashes before', async () => {
  for (const url of ['/v2/flash/runsync?wait=5', '/v2//flash/runsync?wait=5', '/v2//flash/runsync/?wait=5']) {
    assert.ok(addresses.handles(url), url);
    assert.deepEqual(await addresses.resolve({ url, headers } as unknown as Request), {
      endpointId: 'e1',
      operation: 'runsync',
      rest: [],
      query: 'wait=5',
    });
  }
  for (const url of ['/v2/flash', '/v2/e1/flash/run', '/v1/flash/run', '//v2/flash/run'])
    assert.ok(!addresses.handles(url), url);
});
