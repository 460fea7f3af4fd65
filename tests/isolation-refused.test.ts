import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chownSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createApiClient } from '../packages/testing/src/api-client.ts';
import { BERTH_COMMAND, runBerth } from '../packages/testing/src/berth-command.ts';
import { createPod, waitForPodStatus } from '../packages/testing/src/pod-client.ts';
import { startServerProcess, type ServerProcess } from '../packages/testing/src/server-process.ts';
import { createTestDatabase, type TestDatabase } from '../packages/testing/src/test-database.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

/** By custom: nobody. Without root, this user itself cannot run processes as another one. */
const user = process.getuid?.() === 0 ? 65_534 : undefined;
const isReadable =
  user === undefined || spawnSync(BERTH_COMMAND, ['--version'], { uid: user, gid: user }).status === 0;

for (const isolation of ['auto', 'none'] as const) {
  describe(`a Berth without root, with process.isolation ${isolation}`, { skip: !isReadable }, () => {
    let database: TestDatabase;
    let server: ServerProcess;
    let other: ReturnType<typeof createApiClient>;
    before(async () => {
      database = await createTestDatabase('sqlite');
      if (user !== undefined) chownSync(database.data, user, user);
      const env = { BERTH_RATE_LIMITS: 'off', BERTH_PROCESS_ISOLATION: isolation };
      server = await startServerProcess(database, env, ['--port', '0'], user);
      const account = await server.client().call<{ key: string }>('POST', '/v2/accounts', { name: 'other' });
      other = createApiClient(server.url, account.body.key);
    });
    after(async () => {
      for (const client of [server.client(), other])
        for (const { id } of (await client.call<{ pods: { id: string }[] }>('GET', '/v2/pods')).body.pods)
          await client.call('DELETE', `/v2/pods/${id}`);
      await server.stop();
      await database.drop();
    });

    const expected = isolation === 'auto' ? 'refused' : 'none';

    test('runs the pods of the root account', async () => {
      const { status, body, text } = await createPod(server.client());
      assert.equal(status, 201, text);
      await waitForPodStatus(server.client(), body.id, 'RUNNING');
    });

    test(`${expected === 'none' ? 'runs' : 'refuses'} those of others`, async () => {
      const { status, body, text } = await createPod(other);
      if (expected === 'none') {
        assert.equal(status, 201, text);
        await waitForPodStatus(other, body.id, 'RUNNING');
        return;
      }
      assert.equal(status, 400, text);
      assert.match(
        text,
        /runs processes of the root account only.*run Berth as root.*BERTH_PROCESS_ISOLATION=none/,
      );
    });

    test('says so in the log, in the API and in berth doctor', async () => {
      await waitFor('the log says it', () => server.log().includes(`"isolation":"${expected}"`));
      const { body } = await other.call<{ dataCenters: { id: string; isolation: string }[] }>(
        'GET',
        '/v2/catalog/datacenters',
      );
      assert.equal(body.dataCenters.find(({ id }) => id === 'LOCAL-1')?.isolation, expected);
      const { stdout } = await runBerth(['doctor', '--data', database.data], {
        BERTH_PROCESS_ISOLATION: isolation,
        BERTH_DOCKER: 'off',
      });
      if (isolation === 'none') assert.match(stdout, /process isolation.*process\.isolation is none/);
      else assert.match(stdout, /process isolation/);
      const file = join(database.data, 'berth.yaml');
      writeFileSync(file, `process:\n  isolation: ${isolation}\n`);
      const configured = await runBerth(['doctor', '--data', database.data], {
        BERTH_CONFIG: file,
        BERTH_DOCKER: 'off',
      });
      assert.equal(
        /process\.isolation is none/.test(configured.stdout),
        isolation === 'none',
        configured.stdout,
      );
    });
  });
}
