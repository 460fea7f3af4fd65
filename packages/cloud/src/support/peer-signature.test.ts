import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PeerSignature } from './peer-signature.ts';

test('only a request that was signed with the same key, for this path and not long ago, is of a peer', () => {
  const signature = new PeerSignature(Buffer.alloc(32, 1));
  const header = signature.sign('POST', '/internal/engines/process/list', 1_000_000);
  const check = (changes: Partial<Record<'header' | 'method' | 'path', string>>, now = 1_000_000): boolean =>
    signature.verify(
      changes.header ?? header,
      changes.method ?? 'POST',
      changes.path ?? '/internal/engines/process/list',
      now,
    );
  assert.equal(check({}), true);
  assert.equal(check({ method: 'GET' }), false);
  assert.equal(check({ path: '/internal/engines/process/stop' }), false);
  assert.equal(check({}, 1_400_000), false);
  assert.equal(check({ header: `${header.slice(0, -2)}00` }), false);
  for (const odd of ['', '.', 'x.y', '1000000', '1000000.zz']) assert.equal(check({ header: odd }), false);
  assert.equal(signature.verify(undefined, 'POST', '/', 0), false);
  const other = new PeerSignature(Buffer.alloc(32, 2));
  assert.equal(other.verify(header, 'POST', '/internal/engines/process/list', 1_000_000), false);
});
