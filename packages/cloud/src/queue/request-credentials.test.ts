import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import { Sealer } from '../support/crypto.ts';
import { RequestCredentials } from './request-credentials.ts';

const credentials = new RequestCredentials(new Sealer(randomBytes(32)));
const SECRET = 'wJalrXUtnFEMI';

describe('the credentials of a request', () => {
  test('are sealed while it is stored, and the worker gets them as they came', () => {
    const request = `{"input":{"n":1.0},"s3Config":{"accessSecret":"${SECRET}","n":1.0}}`;
    const stored = credentials.seal(request, 'ep');
    assert.ok(!stored.includes(SECRET));
    const opened = credentials.open(stored, 'ep');
    assert.deepEqual(JSON.parse(opened), JSON.parse(request));
    assert.ok(opened.includes('"n":1.0'), 'numbers keep their digits');
  });

  test('are found however the name is written, and the last one counts', () => {
    for (const name of ['s3Config', '\\u00733Config', 's3Confi\\u0067']) {
      const stored = credentials.seal(`{"${name}":{"accessSecret":"${SECRET}"},"input":{}}`, 'ep');
      assert.ok(!stored.includes(SECRET), name);
      assert.equal(JSON.parse(credentials.open(stored, 'ep')).s3Config.accessSecret, SECRET);
    }
    const twice = credentials.seal(`{"s3Config":{"a":"${SECRET}"},"s3Config":{"a":"last"}}`, 'ep');
    assert.ok(!twice.includes(SECRET) && !twice.includes('last'));
    assert.equal(JSON.parse(credentials.open(twice, 'ep')).s3Config.a, 'last');
  });

  test('do not open for another endpoint', () => {
    const stored = credentials.seal(`{"s3Config":{"a":"${SECRET}"}}`, 'one');
    assert.throws(() => credentials.open(stored, 'two'), /cannot be decrypted/);
  });

  test('leave other requests as they are, and those of an earlier version', () => {
    for (const request of ['{"input":{"text":"s3Config"}}', '{"input":{}}', '{"s3Config":null}'])
      assert.equal(credentials.seal(request, 'ep'), request);
    const old = '{"s3Config":{"a":"b"},"input":"berth-sealed:"}';
    assert.equal(credentials.open(old, 'ep'), old);
  });
});
