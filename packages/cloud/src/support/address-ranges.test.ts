import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AddressRanges, isAddressRange } from './address-ranges.ts';

test('ranges of both families are recognised, anything else is not', () => {
  for (const text of ['10.0.0.0/8', '192.168.1.7/32', '::1/128', 'fd00::/8'])
    assert.ok(isAddressRange(text), text);
  for (const text of [
    '',
    '10.0.0.0',
    '10.0.0.0/33',
    '::/129',
    '10.0.0/8',
    'x/8',
    '10.0.0.0/8/8',
    '10.0.0.0/-1',
  ])
    assert.equal(isAddressRange(text), false, text);
});

test('an address is in a range, also in its IPv6 form', () => {
  const ranges = new AddressRanges(['127.0.0.0/8', '::1/128']);
  ranges.add('10.42.0.0/16');
  for (const address of ['127.0.0.1', '::1', '::ffff:127.3.2.1', '10.42.255.255', '::ffff:10.42.0.1'])
    assert.ok(ranges.includes(address), address);
  for (const address of ['10.43.0.0', '::2', '', 'host', '::ffff:192.168.0.1'])
    assert.equal(ranges.includes(address), false, address);
});
