import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { checkProperty } from '../../../testing/src/property-testing.ts';
import { checkSshKeys, joinSshKeys, splitSshKeys } from './ssh-keys.ts';

const line = fc
  .tuple(
    fc.constantFrom('ssh-ed25519', 'ssh-rsa', 'ecdsa-sha2-nistp256', 'sk-ssh-ed25519@openssh.com'),
    fc.base64String({ minLength: 4 }),
    fc.constantFrom('', ' me@laptop', ' two words'),
  )
  .map(([type, key, comment]) => `${type} ${key}${comment}`);

describe('SSH keys', () => {
  test('are the same as a list and as one text', async () => {
    await checkProperty(
      fc.property(fc.array(line), fc.constantFrom('\n', '\n\n', '\r\n', '\n \n'), (keys, between) => {
        checkSshKeys(keys);
        assert.deepEqual(splitSshKeys(joinSshKeys(keys)), keys);
        assert.deepEqual(splitSshKeys(keys.join(between)), keys);
      }),
    );
  });

  test('that are none are refused, and counted from one', () => {
    for (const wrong of [
      '',
      'ssh-ed25519',
      'AAAA',
      'rsa AAAA',
      'ssh-ed25519  AAAA',
      'ssh-ed25519 AAAA\nssh-rsa BBBB',
      '-----BEGIN OPENSSH PRIVATE KEY-----',
    ]) {
      assert.throws(() => checkSshKeys(['ssh-ed25519 AAAA', wrong]), /^BerthError: SSH key 2 must be/, wrong);
    }
  });
});
