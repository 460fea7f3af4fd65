import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { createTestCertificate } from '../../../../../testing/src/test-certificate.ts';
import { DockerClient } from './docker-client.ts';

test('a daemon with TLS is checked, and gets the certificate of DOCKER_CERT_PATH', async (context) => {
  const [ours, theirs] = [createTestCertificate(), createTestCertificate()];
  const server = createServer(
    {
      key: theirs.key,
      cert: theirs.certificate,
      ca: ours.certificate,
      requestCert: true,
      rejectUnauthorized: false,
    },
    (request, response) => response.end(JSON.stringify((request.socket as TLSSocket).authorized)),
  );
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const host = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const folder = mkdtempSync(join(tmpdir(), 'berth-docker-tls-'));
  context.after(() => {
    server.closeAllConnections();
    server.close();
    rmSync(folder, { recursive: true });
  });
  const env = { DOCKER_CERT_PATH: folder };
  await assert.rejects(new DockerClient(host, env).get('/info'), /self-signed certificate/);
  writeFileSync(join(folder, 'ca.pem'), theirs.certificate);
  assert.equal(await new DockerClient(host, env).get('/info'), false);
  writeFileSync(join(folder, 'cert.pem'), ours.certificate);
  writeFileSync(join(folder, 'key.pem'), ours.key);
  assert.equal(await new DockerClient(host, env).get('/info'), true);
});
