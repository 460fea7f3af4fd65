import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseDaemonAddress, readDaemonCertificates } from './daemon-address.ts';

test('addresses in the format of DOCKER_HOST are parsed', () => {
  const parse = (address: string, env = {}): unknown => parseDaemonAddress(address, env);
  const tcp = (host: string, port: string, tls: boolean) => ({ kind: 'tcp', host, port, tls });
  assert.deepEqual(parse('unix:///run/docker.sock'), { kind: 'socket', socketPath: '/run/docker.sock' });
  assert.deepEqual(parse('npipe:////./pipe/docker_engine'), {
    kind: 'socket',
    socketPath: '//./pipe/docker_engine',
  });
  assert.deepEqual(parse('tcp://10.0.0.1:2375'), tcp('10.0.0.1', '2375', false));
  assert.deepEqual(parse('10.0.0.1'), tcp('10.0.0.1', '2375', false));
  assert.deepEqual(parse('tcp://[::1]:99'), tcp('::1', '99', false));
  assert.deepEqual(parse('tcp://10.0.0.1:2376'), tcp('10.0.0.1', '2376', true));
  assert.deepEqual(parse('https://docker.example.com:99'), tcp('docker.example.com', '99', true));
  assert.deepEqual(parse('tcp://10.0.0.1', { DOCKER_TLS_VERIFY: '1' }), tcp('10.0.0.1', '2376', true));
  assert.deepEqual(parse('ssh://ann@build.example.com:22'), {
    kind: 'ssh',
    host: 'build.example.com',
    port: '22',
    username: 'ann',
  });
  assert.throws(() => parse('tcp://10.0.0.1:no'), /Invalid URL/);
});

test('certificates are read from DOCKER_CERT_PATH, as far as they are there', () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-certificates-'));
  writeFileSync(join(folder, 'ca.pem'), 'authority');
  const env = { DOCKER_CERT_PATH: folder };
  assert.deepEqual(readDaemonCertificates(env), { ca: Buffer.from('authority') });
  writeFileSync(join(folder, 'key.pem'), 'key');
  assert.deepEqual(Object.keys(readDaemonCertificates(env)), ['ca', 'key']);
  rmSync(folder, { recursive: true });
});
