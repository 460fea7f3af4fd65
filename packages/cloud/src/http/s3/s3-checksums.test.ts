import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CHECKSUM_HEADERS, createChecksum } from './s3-checksums.ts';

/** Of the text that such numbers are given for: 123456789. */
const CHECK_VALUES = new Map([
  ['crc32', 'cbf43926'],
  ['crc32c', 'e3069283'],
  ['crc64nvme', 'ae8b14860a799888'],
]);

test('checksums are those that are published', () => {
  for (const [name, value] of CHECK_VALUES) {
    const checksum = createChecksum(`x-amz-checksum-${name}`);
    checksum?.update(Buffer.from('12345'));
    checksum?.update(Buffer.from('6789'));
    assert.equal(Buffer.from(checksum?.digest() ?? '', 'base64').toString('hex'), value, name);
  }
});

test('there is none but those that are known', () => {
  for (const header of CHECKSUM_HEADERS) assert.ok(createChecksum(header), header);
  for (const name of ['constructor', '__proto__', 'toString', 'type', ''])
    assert.equal(createChecksum(`x-amz-checksum-${name}`), undefined, name);
});
