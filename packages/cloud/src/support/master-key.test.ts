import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import fc from 'fast-check';
import { checkProperty } from '../../../testing/src/property-testing.ts';
import { loadMasterKey, parseMasterKey } from './master-key.ts';

describe('the master key', () => {
  let data: string;
  beforeEach(() => {
    data = mkdtempSync(join(tmpdir(), 'berth-master-'));
  });
  afterEach(() => rmSync(data, { recursive: true }));

  test('is created once, readable by its owner only, and found again', () => {
    const made = loadMasterKey(data, undefined, undefined);
    assert.equal(made.length, 32);
    assert.equal(statSync(join(data, 'master.key')).mode & 0o777, 0o600);
    assert.deepEqual(loadMasterKey(data, undefined, undefined), made);
    assert.deepEqual(loadMasterKey(data, undefined, 'a root key that came later'), made);
  });

  test('that is configured is used and not stored', () => {
    const given = Buffer.alloc(32, 5);
    assert.equal(loadMasterKey(data, given, 'root'), given);
    assert.ok(!existsSync(join(data, 'master.key')));
  });

  test('is derived from the root key, the same on every server, and does not reveal it', () => {
    const other = mkdtempSync(join(tmpdir(), 'berth-master-'));
    const made = loadMasterKey(data, undefined, 'the root key of all');
    assert.deepEqual(loadMasterKey(other, undefined, 'the root key of all'), made);
    rmSync(other, { recursive: true });
    assert.doesNotMatch(made.toString('latin1'), /root/);
  });

  test('is 32 bytes in hexadecimal digits or in base64, and nothing else', async () => {
    await checkProperty(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (bytes) => {
        const key = Buffer.from(bytes);
        for (const text of [
          key.toString('hex'),
          key.toString('hex').toUpperCase(),
          key.toString('base64'),
          key.toString('base64url'),
        ])
          assert.deepEqual(parseMasterKey(text), key);
      }),
    );
    for (const text of ['', 'short', 'ff'.repeat(31), 'ff'.repeat(33), 'zz'.repeat(32)])
      assert.throws(() => parseMasterKey(text), /32 bytes/, text);
  });

  test('that is damaged on disk stops the start and is not replaced', () => {
    writeFileSync(join(data, 'master.key'), 'half of it');
    assert.throws(() => loadMasterKey(data, undefined, undefined), /32 bytes/);
    writeFileSync(join(data, 'master.key'), '');
    assert.throws(() => loadMasterKey(data, undefined, undefined), /32 bytes/);
  });
});
