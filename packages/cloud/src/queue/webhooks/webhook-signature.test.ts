import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import { signWebhook, webhookSecret } from './webhook-signature.ts';

const key = Buffer.alloc(32, 3);

test('the secret is derived from key and account alone', () => {
  assert.equal(webhookSecret(key, 'a1'), webhookSecret(Buffer.alloc(32, 3), 'a1'));
  assert.notEqual(webhookSecret(key, 'a1'), webhookSecret(key, 'a2'));
  assert.notEqual(webhookSecret(key, 'a1'), webhookSecret(Buffer.alloc(32, 4), 'a1'));
  assert.match(webhookSecret(key, 'a1'), /^whsec_[0-9a-f]{64}$/);
});

test('a signature is the HMAC of the bytes, keyed with the secret as it is shown', () => {
  const expected = createHmac('sha256', 'whsec_x').update('{"a":"ü"}', 'utf8').digest('hex');
  assert.equal(signWebhook('whsec_x', '{"a":"ü"}'), `sha256=${expected}`);
  assert.equal(signWebhook('whsec_x', Buffer.from('{"a":"ü"}')), `sha256=${expected}`);
  assert.notEqual(signWebhook('whsec_x', '{}'), signWebhook('whsec_y', '{}'));
});
