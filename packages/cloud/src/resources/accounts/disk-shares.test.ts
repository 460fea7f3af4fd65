import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DiskShares } from './disk-shares.ts';

const refused = { code: 'quota-bytes', message: /the disk is nearly full.*its share/ };

test('while the disk is nearly full, an account uploads no more than its share of it', () => {
  let scarce: number | undefined;
  let accounts = 2;
  const shares = new DiskShares({ scarceBytes: () => scarce, accounts: () => accounts });
  shares.take('one', 5_000);
  scarce = 1_000;
  const notWritten = shares.take('one', 300);
  shares.take('one', 200);
  assert.throws(() => shares.take('one', 1), refused);
  shares.take('other', 500);
  assert.throws(() => shares.take('other', 1), refused);
  notWritten();
  shares.take('one', 300);
  assert.throws(() => shares.take('one', 1), refused);
  // There is plenty again.
  scarce = undefined;
  shares.take('one', 5_000);
  scarce = 1_000;
  shares.take('one', 500);
  // An account that is alone has all of it.
  accounts = 1;
  shares.take('one', 5_000);
});
