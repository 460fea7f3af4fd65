import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createApiClient } from '../packages/testing/src/api-client.ts';
import type { ApiClient } from '../packages/testing/src/api-client.ts';
import { BERTH_COMMAND } from '../packages/testing/src/berth-command.ts';
import { containerLogLines, createPod, waitForPodStatus } from '../packages/testing/src/pod-client.ts';
import { startServerProcess, type ServerProcess } from '../packages/testing/src/server-process.ts';
import { createTestDatabase, type TestDatabase } from '../packages/testing/src/test-database.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';
import { pageBlock } from './docs/pages.ts';

/** For users who are not root. */
const [, USERS = '', PREFIX = ''] =
  /^BERTH_PROCESS_USERS=(\S+) (unshare .*) berth up$/m.exec(
    pageBlock('docs/isolation.md', 'BERTH_PROCESS_USERS'),
  ) ?? [];

interface MappableUser {
  uid: number;
  /** The ids of the machine that it may give to others. */
  first: number;
  count: number;
}

/** An ordinary user of this machine with a range of ids of its own. */
function mappableUser(): MappableUser | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0 || !existsSync('/usr/bin/newuidmap'))
    return undefined;
  if (!existsSync('/etc/subuid') || !existsSync('/etc/subgid')) return undefined;
  for (const line of readFileSync('/etc/subuid', 'utf8').split('\n')) {
    const [name = '', first, count] = line.split(':');
    const uid = new RegExp(`^${name}:[^:]*:(\\d+):`, 'm').exec(readFileSync('/etc/passwd', 'utf8'))?.[1];
    if (uid === undefined || !new RegExp(`^${name}:`, 'm').test(readFileSync('/etc/subgid', 'utf8')))
      continue;
    return { uid: Number(uid), first: Number(first), count: Number(count) };
  }
  return undefined;
}

const user = mappableUser();
const canStart =
  user !== undefined &&
  spawnSync('unshare', [...PREFIX.split(' ').slice(1), BERTH_COMMAND, '--version'], {
    uid: user.uid,
    gid: user.uid,
  }).status === 0;

describe('a Berth of an ordinary user who may map ids', {
  skip: canStart ? false : 'this machine has no user with ids in /etc/subuid, or lacks newuidmap',
}, () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-mapped-'));
  const program = join(folder, 'berth');
  let database: TestDatabase;
  let server: ServerProcess;
  let other: ApiClient;
  before(async () => {
    database = await createTestDatabase('sqlite');
    chownSync(database.data, user?.uid ?? 0, user?.uid ?? 0);
    chmodSync(folder, 0o755);
    writeFileSync(program, `#!/bin/sh\nexec ${PREFIX} ${BERTH_COMMAND} "$@"\n`, { mode: 0o755 });
    const env = { BERTH_RATE_LIMITS: 'off', BERTH_PROCESS_USERS: USERS };
    server = await startServerProcess(database, env, ['--port', '0'], user?.uid, program);
    const account = await server.client().call<{ key: string }>('POST', '/v2/accounts', { name: 'other' });
    other = createApiClient(server.url, account.body.key);
  });
  after(async () => {
    for (const client of [server.client(), other])
      for (const { id } of (await client.call<{ pods: { id: string }[] }>('GET', '/v2/pods')).body.pods)
        await client.call('DELETE', `/v2/pods/${id}`);
    await server.stop();
    await database.drop();
    rmSync(folder, { recursive: true });
  });

  test('runs processes of other accounts under ids of its own range, in namespaces', async () => {
    const { body } = await other.call<{ dataCenters: { id: string; isolation: string }[] }>(
      'GET',
      '/v2/catalog/datacenters',
    );
    assert.equal(body.dataCenters.find(({ id }) => id === 'LOCAL-1')?.isolation, 'namespaces');
    const script = `for file in master.key root.key berth.db; do cat "$DATA/$file" && echo reached; done
kill -0 "$BERTH_PID" && echo reached; cat "/proc/$BERTH_PID/environ" && echo reached
echo "user $(id -u)"; exec sleep 1000`;
    const made = await createPod(other, {
      cmd: ['sh', '-c', script],
      env: { DATA: database.data, BERTH_PID: String(server.process.pid) },
    });
    assert.equal(made.status, 201, made.text);
    const { id } = made.body;
    await waitForPodStatus(other, id, 'RUNNING');
    const lines = await waitFor('it has tried all', async () => {
      const found = await containerLogLines(other, id);
      return found.some((line) => line.startsWith('user ')) && found;
    });
    assert.ok(!lines.includes('reached'), lines.join('\n'));
    const inside = Number(lines.find((line) => line.startsWith('user '))?.slice('user '.length));
    assert.ok(inside >= 1000 && inside <= 60_000, lines.join('\n'));
    // Of the machine: neither root nor the user who runs Berth.
    const { uid } = statSync(join(database.data, 'instances', id, 'root'));
    assert.equal(uid, (user?.first ?? 0) + inside - 1);
    assert.ok(!lines.some((line) => line.includes(server.key)));
    assert.equal((await other.call('DELETE', `/v2/pods/${id}`)).status, 204);
    await waitFor('its files are deleted', () => !existsSync(join(database.data, 'instances', id)));
  });

  test('runs those of the root account as the user who runs Berth', async () => {
    const made = await createPod(server.client());
    assert.equal(made.status, 201, made.text);
    await waitForPodStatus(server.client(), made.body.id, 'RUNNING');
    assert.equal(statSync(join(database.data, 'instances', made.body.id, 'root')).uid, user?.uid);
  });
});
