import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import { createTestCertificate } from '../../../../testing/src/test-certificate.ts';
import { createSigningRequest } from './acme/signing-request.ts';
import { needsRenewal } from './acme/acme-certificates.ts';
import { readCertificatePair } from './certificate-pair.ts';

const DAY_MS = 86_400_000;
const NAMES = { certificate: 'c.pem', key: 'k.pem' };

test('a pair is checked, and the reason says what is wrong with it', () => {
  const { certificate, key } = createTestCertificate(['berth.test']);
  const other = createTestCertificate();
  const now = Date.now();
  const pair = readCertificatePair(certificate, key, now, NAMES);
  assert.deepEqual(pair.names, ['berth.test', 'localhost', '127.0.0.1']);
  assert.equal(Math.round((pair.validTo - now) / DAY_MS), 2);
  const refused = (...args: [string, string, number]): unknown => {
    try {
      return readCertificatePair(...args, NAMES);
    } catch (error) {
      return (error as Error).message;
    }
  };
  assert.match(
    String(refused(certificate, other.key, now)),
    /k\.pem is not that .* c\.pem, which is for berth\.test/,
  );
  assert.match(String(refused('', key, now)), /c\.pem contains no certificate/);
  assert.match(String(refused(certificate, 'text', now)), /k\.pem contains no private key/);
  assert.match(String(refused(certificate, key, now + 3 * DAY_MS)), /expired on 20/);
  assert.match(String(refused(certificate, key, now - DAY_MS)), /not valid before 20/);
  assert.match(
    String(refused(certificate + other.certificate, key, now)),
    /was not issued by the one after it/,
  );
  const locked = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({
    type: 'pkcs8',
    format: 'pem',
    cipher: 'aes-256-cbc',
    passphrase: 'x',
  });
  assert.match(String(refused(certificate, String(locked), now)), /passphrase/);
});

test('a certificate is renewed before a third of its life is left, and where a name is missing', () => {
  const pair = { certificate: '', key: '', names: ['a.test'], validFrom: 0, validTo: 90 * DAY_MS };
  assert.equal(needsRenewal(undefined, ['a.test'], 0), true);
  assert.equal(needsRenewal(pair, ['a.test'], 59 * DAY_MS), false);
  assert.equal(needsRenewal(pair, ['a.test'], 61 * DAY_MS), true);
  assert.equal(needsRenewal(pair, ['A.test', 'b.test'], 0), true);
});

test('OpenSSL reads a signing request as it was meant', () => {
  const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const names = Array.from({ length: 12 }, (_, index) => `name-${index}.berth.example.com`);
  const request = createSigningRequest(names, keys);
  const text = execFileSync('openssl', ['req', '-inform', 'DER', '-noout', '-text', '-verify'], {
    input: request,
    stdio: ['pipe', 'pipe', 'pipe'],
  }).toString();
  assert.match(text, /Signature Algorithm: ecdsa-with-SHA256/);
  assert.deepEqual(
    text.match(/DNS:[^,\s]+/g),
    names.map((name) => `DNS:${name}`),
  );
});
