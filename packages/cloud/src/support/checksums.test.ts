import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createChecksum } from './checksums.ts';

/** Of the text that such numbers are given for: 123456789. */
const CHECK_VALUES = {
  crc32: 'cbf43926',
  crc32c: 'e3069283',
  crc64nvme: 'ae8b14860a799888',
} as const;

test('checksums are those that are published', () => {
  for (const name of ['crc32', 'crc32c', 'crc64nvme'] as const) {
    const checksum = createChecksum(name);
    checksum.update(Buffer.from('12345'));
    checksum.update(Buffer.from('6789'));
    assert.equal(checksum.digest().toString('hex'), CHECK_VALUES[name], name);
  }
});
