import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { runBerth } from '../packages/testing/src/berth-command.ts';
import { createRunningPod } from '../packages/testing/src/pod-client.ts';
import { startServerProcess, type ServerProcess } from '../packages/testing/src/server-process.ts';
import { createTemporaryFolder } from '../packages/testing/src/temporary-folder.ts';
import { createTestCertificate } from '../packages/testing/src/test-certificate.ts';
import { createTestDatabase, type TestDatabase } from '../packages/testing/src/test-database.ts';

/** What it says when a command fails with this server and key. */
async function failure(url: string, key: string, ...words: string[]): Promise<string> {
  const { code, stderr } = await runBerth(words, { BERTH_URL: url, BERTH_API_KEY: key });
  assert.equal(code, 1, stderr);
  return stderr;
}

describe('errors of the command line name the cause', () => {
  let database: TestDatabase;
  let server: ServerProcess;
  before(async () => {
    database = await createTestDatabase('sqlite');
    server = await startServerProcess(database);
  });
  after(async () => {
    await server.stop();
    await database.drop();
  });

  test('a wrong key, and none', async () => {
    assert.match(await failure(server.url, 'rpa_WRONG', 'ps'), /the key is from BERTH_API_KEY/);
    assert.match(
      await failure(server.url, '', 'ps'),
      /no key was sent: .*set BERTH_API_KEY or use "berth login/,
    );
  });

  test('TLS: an unknown certificate, and HTTPS where the server speaks HTTP', async () => {
    const { certificate, key } = createTestCertificate();
    const folder = createTemporaryFolder('causes', { 'c.pem': certificate, 'k.pem': key });
    const other = await createTestDatabase('sqlite');
    const secure = await startServerProcess(other, {
      BERTH_TLS_CERTIFICATE: join(folder.path, 'c.pem'),
      BERTH_TLS_KEY: join(folder.path, 'k.pem'),
    });
    try {
      assert.match(
        await failure(secure.url, secure.key, 'ps'),
        /TLS: its certificate is self-signed; name it in NODE_EXTRA_CA_CERTS=FILE/,
      );
      assert.match(
        await failure(server.url.replace('http:', 'https:'), server.key, 'ps'),
        /TLS: the server speaks plain HTTP there/,
      );
    } finally {
      await secure.stop();
      await other.drop();
      folder.remove();
    }
  });

  test('a proxy that does not pass on upgrades', async () => {
    const pod = await createRunningPod(server.client());
    const proxy = await startProxy(server.url, (path) => path);
    try {
      assert.match(
        await failure(addressOf(proxy), server.key, 'exec', pod.id, 'true'),
        /a proxy in front of Berth does not pass on the headers Upgrade and Connection; see docs\/troubleshooting.md/,
      );
    } finally {
      proxy.close();
      await server.client().call('DELETE', `/v2/pods/${pod.id}`);
    }
  });

  test('a server of an earlier version, which does not have the path', async () => {
    const earlier = await startProxy(server.url, (path) => path.replace('/v2/network-volumes', '/v2/disks'));
    try {
      assert.match(
        await failure(addressOf(earlier), server.key, 'volume', 'ls'),
        /does not know this command; it may be of an earlier version/,
      );
    } finally {
      earlier.close();
    }
  });
});

/** A proxy as simple ones are: it knows requests and answers, and no upgrades. */
async function startProxy(target: string, rename: (path: string) => string): Promise<Server> {
  const proxy = createServer((incoming, outgoing) => {
    const { upgrade: _, connection: __, ...headers } = incoming.headers;
    const onward = request(
      new URL(rename(incoming.url ?? '/'), target),
      { method: incoming.method ?? 'GET', headers },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
      },
    );
    incoming.pipe(onward);
  }).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  return proxy;
}

function addressOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
