import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { renameSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { connect, getCACertificates, setDefaultCACertificates } from 'node:tls';
import { runBerth } from '../packages/testing/src/berth-command.ts';
import { deployHandler } from '../packages/testing/src/deploy-handler.ts';
import { createQueueEndpoint } from '../packages/testing/src/queue-endpoint-client.ts';
import { parseLogLines } from '../packages/testing/src/server-fixture.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../packages/testing/src/server-process.ts';
import { createTemporaryFolder } from '../packages/testing/src/temporary-folder.ts';
import { openTerminal } from '../packages/testing/src/terminal-client.ts';
import { createTestCertificate } from '../packages/testing/src/test-certificate.ts';
import { createTestDatabase } from '../packages/testing/src/test-database.ts';
import type { TestDatabase } from '../packages/testing/src/test-database.ts';
import { freePort } from '../packages/testing/src/free-port.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

describe('HTTPS by certificate files', () => {
  const first = createTestCertificate(['berth.test']);
  const second = createTestCertificate(['berth.test']);
  const folder = createTemporaryFolder('tls', { 'c.pem': first.certificate, 'k.pem': first.key });
  const files = { certificate: join(folder.path, 'c.pem'), key: join(folder.path, 'k.pem') };
  const settings = { BERTH_TLS_CERTIFICATE: files.certificate, BERTH_TLS_KEY: files.key };
  let database: TestDatabase;
  let server: ServerProcess;
  let redirectPort: number;

  before(async () => {
    setDefaultCACertificates([...getCACertificates(), first.certificate, second.certificate]);
    database = await createTestDatabase('sqlite');
    redirectPort = await freePort();
    const port = await freePort();
    const env = {
      ...settings,
      BERTH_TLS_REDIRECT_PORT: String(redirectPort),
      BERTH_WORKER_URL: `https://localhost:${port}`,
    };
    server = await startServerProcess(database, env, ['--port', String(port)]);
  });
  after(async () => {
    await server?.stop();
    await database?.drop();
    folder.remove();
  });

  test('small and large job requests go through it, on the fast path and on Node', async () => {
    assert.match(server.url, /^https:/);
    const endpoint = await createQueueEndpoint(server.url, server.key);
    for (const word of ['small', 'x'.repeat(400_000)]) {
      const id = await endpoint.run({ word });
      const taken = await endpoint.call<{ id: string; input: unknown }>(
        'GET',
        'job-take/w1?gpu=none&job_in_progress=0',
      );
      assert.deepEqual([taken.status, taken.body.id, taken.body.input], [200, id, { word }], taken.text);
      const done = await endpoint.call('POST', `job-done/w1/${id}?gpu=none&isStream=false`, {
        output: word.length,
      });
      assert.equal(done.status, 200, done.text);
      assert.equal((await endpoint.status(id)).output, word.length);
    }
  });

  test('workers use their channel over it, and a terminal opens over wss', async () => {
    const client = server.client();
    const endpointId = await deployHandler(client, 'tls', 'export default (job) => job.input;', {
      env: { NODE_EXTRA_CA_CERTS: files.certificate },
    });
    const { body, text } = await client.call<{ output: unknown; workerId: string }>(
      'POST',
      `/v2/${endpointId}/runsync?wait=60000`,
      { input: { a: 1 } },
    );
    assert.deepEqual(body.output, { a: 1 }, text);
    const url = `${server.url.replace('https', 'wss')}/v2/serverless/${endpointId}/workers/${body.workerId}/terminal?cmd=cat`;
    const terminal = await openTerminal(url, { authorization: `Bearer ${server.key}` });
    await terminal.typeUntilOutput('over tls\n', 'over tls');
    terminal.terminate();
    await client.call('DELETE', `/v2/serverless/${endpointId}`);
  });

  test('HTTP is served on this machine; others are redirected, method and path kept', async () => {
    const port = Number(new URL(server.url).port);
    assert.equal((await fetch(`http://127.0.0.1:${port}/healthz`)).status, 200);
    const away = await fetch(`http://127.0.0.1:${redirectPort}/v2/x?y=1`, {
      method: 'POST',
      body: '{}',
      redirect: 'manual',
    });
    assert.deepEqual(
      [away.status, away.headers.get('location')],
      [308, `https://127.0.0.1:${port}/v2/x?y=1`],
    );
    const elsewhere = Object.values(networkInterfaces())
      .flat()
      .find((found) => found?.family === 'IPv4' && !found.internal);
    if (elsewhere === undefined) return;
    const asked = request({
      host: '127.0.0.1',
      port,
      path: '/healthz',
      localAddress: elsewhere.address,
      agent: false,
    }).end();
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    assert.deepEqual(
      [answer.statusCode, answer.headers.location],
      [308, `https://127.0.0.1:${port}/healthz`],
    );
    answer.resume();
  });

  test('the command line finds it, and doctor shows when the certificate ends', async () => {
    const { json, code, stderr } = await runBerth<{
      checks: { check: string; ok: boolean; found: string }[];
    }>(['doctor', '--json', '--data', database.data], { ...settings, BERTH_API_KEY: server.key });
    const certificate = json.checks.find(({ check }) => check === 'certificate');
    assert.match(certificate?.found ?? '', /berth\.test.* until 20\d\d-/, stderr);
    // Two days are left.
    assert.deepEqual([certificate?.ok, code], [false, 1]);
  });

  test('a new pair is used without a restart; one that does not fit is refused, and the old one stays', async () => {
    const port = Number(new URL(server.url).port);
    const replace = (file: string, text: string): void => {
      writeFileSync(`${file}.new`, text);
      renameSync(`${file}.new`, file);
    };
    replace(files.certificate, second.certificate);
    await waitFor('the half is refused', () =>
      /the key in .*k\.pem is not that of the first certificate/.test(server.log()),
    );
    assert.equal(await servedSerial(port), serialOf(first.certificate));
    replace(files.key, second.key);
    await waitFor(
      'the new pair is served',
      async () => (await servedSerial(port)) === serialOf(second.certificate),
    );
    assert.equal(parseLogLines(server).filter(({ level }) => level === 'error').length, 1);
  });

  test('a pair that cannot be used stops the start with the reason', async () => {
    const refused = async (env: Record<string, string>): Promise<string> => {
      const other = await createTestDatabase('sqlite');
      try {
        const { code, stderr } = await runBerth(['up', '--port', '0', '--data', other.data], {
          BERTH_DOCKER: 'off',
          ...env,
        });
        assert.notEqual(code, 0);
        return stderr;
      } finally {
        await other.drop();
      }
    };
    folder.write({ 'other.pem': first.key });
    assert.match(
      await refused({ ...settings, BERTH_TLS_KEY: join(folder.path, 'other.pem') }),
      /other\.pem is not that of the first certificate/,
    );
    assert.match(
      await refused({ ...settings, BERTH_TLS_KEY: '/nowhere/key.pem' }),
      /\/nowhere\/key\.pem cannot be read \(ENOENT\)/,
    );
    assert.match(
      await refused({ BERTH_TLS_CERTIFICATE: files.certificate }),
      /tls\.certificate is set alone/,
    );
  });
});

function serialOf(certificate: string): string {
  return new X509Certificate(certificate).serialNumber;
}

async function servedSerial(port: number): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const { serialNumber } = socket.getPeerCertificate();
  socket.destroy();
  return serialNumber;
}
