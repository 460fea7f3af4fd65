import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, mock, test } from 'node:test';
import { ManualClock } from '../../support/clock.ts';
import { createLog } from '../../support/log.ts';
import { PeerSignature } from '../../support/peer-signature.ts';
import type { InstanceEngine } from '../engine.ts';
import { sharedEngine } from './shared-engine.ts';

let frozen: Server;
let address: string;
let asked = 0;
before(async () => {
  // As a frozen server: connections are accepted, and nothing is answered.
  frozen = createServer(() => void (asked += 1));
  await new Promise<void>((resolve) => frozen.listen(0, '127.0.0.1', resolve));
  address = `http://127.0.0.1:${(frozen.address() as AddressInfo).port}`;
});
after(() => {
  mock.restoreAll();
  frozen.closeAllConnections();
  frozen.close();
});

test('a machine that does not answer is waited for once, not for each of its instances', async () => {
  mock.method(performance, 'now', () => 0);
  const local = { kind: 'process', list: async () => [], capabilities: {} } as unknown as InstanceEngine;
  const engine = sharedEngine({
    local,
    hosts: {
      hostState: () => ({ state: 'up', address, isLate: true }),
      otherHosts: [{ hostId: 'frozen', address, isLate: true }],
      findHost: async () => 'frozen',
      saveHosts: async () => undefined,
    },
    signature: new PeerSignature(Buffer.alloc(32)),
    clock: new ManualClock(),
    log: createLog({ level: 'silent', format: 'json' }),
  });
  assert.deepEqual(await engine.list(), []);
  for (const id of ['one', 'two', 'three']) {
    const found = await engine.adopt({ engine: 'process', id, state: {} });
    assert.equal(found?.status, 'running', 'it is taken to run');
  }
  assert.equal(asked, 1);
});
