import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { connect, getCACertificates, setDefaultCACertificates } from 'node:tls';
import { AcmeCertificates } from '../../packages/cloud/src/resources/certificates/acme/acme-certificates.ts';
import { createStore, openDatabase } from '../../packages/cloud/src/store/open-store.ts';
import { migrate } from '../../packages/cloud/src/store/migrations/migrate.ts';
import { ManualClock } from '../../packages/cloud/src/support/clock.ts';
import { Sealer } from '../../packages/cloud/src/support/crypto.ts';
import { createLog } from '../../packages/cloud/src/support/log.ts';
import { createHttpsRedirects } from '../../packages/cloud/src/http/tls/https-redirects.ts';
import { freePort } from '../../packages/testing/src/free-port.ts';
import { startServerProcess } from '../../packages/testing/src/server-process.ts';
import { createTemporaryFolder } from '../../packages/testing/src/temporary-folder.ts';
import { createTestCertificate } from '../../packages/testing/src/test-certificate.ts';
import { createTestDatabase } from '../../packages/testing/src/test-database.ts';
import type { TestDatabase } from '../../packages/testing/src/test-database.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';
import { goProgram, PEBBLE } from './go-program.ts';

const LIFE_SECONDS = 90 * 86_400;
const built = await goProgram(PEBBLE.name, PEBBLE.module, { build: true });
const path = 'path' in built ? built.path : '';
const skip = 'reason' in built ? built.reason : false;

describe('HTTPS by ACME, against Pebble', { skip }, () => {
  const own = createTestCertificate();
  const folder = createTemporaryFolder('pebble', { 'c.pem': own.certificate, 'k.pem': own.key });
  const file = (name: string): string => join(folder.path, name);
  let pebble: ChildProcess;
  let database: TestDatabase;
  let redirectPort: number;
  let directory: string;

  before(async () => {
    redirectPort = await freePort();
    const listenAddress = `127.0.0.1:${await freePort()}`;
    const managementListenAddress = `127.0.0.1:${await freePort()}`;
    directory = `https://${listenAddress}/dir`;
    folder.write({
      'pebble.json': JSON.stringify({
        pebble: {
          ...{
            listenAddress,
            managementListenAddress,
            certificate: file('c.pem'),
            privateKey: file('k.pem'),
          },
          ...{ httpPort: redirectPort, tlsPort: 1, certificateValidityPeriod: LIFE_SECONDS },
        },
      }),
    });
    pebble = spawn(path, ['-config', file('pebble.json')], {
      stdio: 'ignore',
      // It refuses every fifth nonce, as a busy authority would.
      env: { ...process.env, PEBBLE_VA_NOSLEEP: '1', PEBBLE_WFE_NONCEREJECT: '20' },
    });
    setDefaultCACertificates([...getCACertificates(), own.certificate]);
    database = await createTestDatabase('sqlite');
    await waitFor('Pebble answers', async () => (await fetch(directory).catch(() => undefined))?.ok);
    const roots = await fetch(`https://${managementListenAddress}/roots/0`);
    setDefaultCACertificates([...getCACertificates(), own.certificate, await roots.text()]);
  });
  after(async () => {
    pebble?.kill();
    await database?.drop();
    folder.remove();
  });

  test('a server gets its certificate, serves it, and has it after a restart', async () => {
    const start = (): ReturnType<typeof startServerProcess> =>
      startServerProcess(database, {
        BERTH_TLS_ACME_DOMAINS: 'localhost',
        BERTH_TLS_ACME_EMAIL: 'operator@berth.test',
        BERTH_TLS_ACME_DIRECTORY: directory,
        BERTH_TLS_REDIRECT_PORT: String(redirectPort),
        NODE_EXTRA_CA_CERTS: file('c.pem'),
      });
    let server = await start();
    const origin = (): string => server.url.replace('127.0.0.1', 'localhost');
    const serial = await waitFor('it is served', () => servedSerial(origin()).catch(() => undefined)).catch(
      (error: unknown) => assert.fail(`${String(error)}\n${server.log()}`),
    );
    // The name and the chain are checked here.
    assert.equal((await fetch(`${origin()}/healthz`)).status, 200);
    await server.stop();
    server = await start();
    await waitFor(
      'it is served again',
      async () => (await servedSerial(origin()).catch(() => '')) === serial,
    );
    assert.equal((server.log().match(/a certificate is ordered/g) ?? []).length, 0);
    await server.stop();
  });

  test('it is renewed by the leading server when a third of its life is left, and others take it over', async () => {
    const opened = await openDatabase({
      database: '',
      data: folder.path,
      poolSize: 2,
      onError: () => undefined,
    });
    await migrate(opened);
    const { acme: store, close } = createStore(opened, new Sealer(Buffer.alloc(32)));
    const clock = new ManualClock(Date.now());
    const log = createLog({ level: 'silent', format: 'json' });
    const deps = { directory, email: '', domains: ['localhost'], store, clock, log };
    const [leader, follower] = [new AcmeCertificates(deps), new AcmeCertificates(deps)];
    const answers = createHttpsRedirects({
      httpsPort: () => 1,
      challengeAnswer: (token) => follower.challengeAnswer(token),
    });
    await once(answers.listen(redirectPort, '127.0.0.1'), 'listening');
    try {
      leader.isLeading = true;
      await leader.check();
      const first = leader.current?.certificate;
      assert.notEqual(first, undefined);
      await follower.check();
      assert.equal(follower.current?.certificate, first);
      clock.advance(LIFE_SECONDS * 1000 * 0.65);
      await leader.check();
      assert.equal(leader.current?.certificate, first);
      clock.advance(LIFE_SECONDS * 1000 * 0.05);
      await leader.check();
      assert.notEqual(leader.current?.certificate, first);
      await follower.check();
      assert.equal(follower.current?.certificate, leader.current?.certificate);
    } finally {
      answers.close();
      await Promise.all([leader.close(), follower.close()]);
      await close();
    }
  });
});

async function servedSerial(origin: string): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port: Number(new URL(origin).port), servername: 'localhost' });
  await once(socket, 'secureConnect');
  const { serialNumber } = socket.getPeerCertificate();
  socket.destroy();
  return serialNumber;
}
