import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Flash } from '../../resources/flash/flash.ts';
import type { Gate } from '../../resources/keys/gate.ts';
import type { Request } from '../raw.ts';
import { FlashAddresses } from './flash-addresses.ts';

const gate = { identify: async () => ({ accountId: 'ann' }) } as unknown as Gate;
const flash = { endpointNamed: async () => 'e1' } as unknown as Flash;
const addresses = new FlashAddresses(gate, flash);
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
