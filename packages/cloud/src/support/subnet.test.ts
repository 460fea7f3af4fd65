import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { formatIpv4, subnetBounds, isSubnet } from './subnet.ts';

describe('ranges of addresses', () => {
  test('a range is written from its first address, from /8 to /24', () => {
    for (const right of ['10.65.0.0/16', '10.0.0.0/8', '192.168.7.0/24', '172.16.0.0/12'])
      assert.ok(isSubnet(right), right);
    for (const wrong of [
      '',
      '10.65.0.0',
      '10.65.0.1/16',
      '10.65.0.0/25',
      '10.0.0.0/7',
      '256.0.0.0/8',
      '10.65.0.0/16 ',
      '::/8',
    ])
      assert.ok(!isSubnet(wrong), wrong);
  });

  test('has a first and a last address', () => {
    const { from, to } = subnetBounds('10.65.3.7/24');
    assert.deepEqual([formatIpv4(from), formatIpv4(to)], ['10.65.3.0', '10.65.3.255']);
    assert.deepEqual(subnetBounds('0.0.0.0/0'), { from: 0, to: 2 ** 32 - 1 });
  });
});
