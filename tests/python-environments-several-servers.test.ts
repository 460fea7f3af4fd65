import assert from 'node:assert/strict';
import { existsSync, globSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { runBerth } from '../packages/testing/src/berth-command.ts';
import { writeWheel } from '../packages/testing/src/python-wheel.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../packages/testing/src/server-process.ts';
import { createTemporaryFolder } from '../packages/testing/src/temporary-folder.ts';
import { createTestDatabase, killInstances } from '../packages/testing/src/test-database.ts';
import type { TestDatabase } from '../packages/testing/src/test-database.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

const HANDLER = `import berth_worker
import tiny

berth_worker.start({"handler": lambda job: tiny.VERSION})
`;

describe('the Python environment of a folder, with two servers on machines of their own', () => {
  const index = mkdtempSync(join(tmpdir(), 'berth-index-'));
  const env = { PIP_NO_INDEX: '1', PIP_FIND_LINKS: index, UV_NO_INDEX: '1', UV_FIND_LINKS: index };
  const servers: ServerProcess[] = [];
  let database: TestDatabase;
  const secondData = (): string => `${database.data}-second`;

  before(async () => {
    writeWheel(index, 'tiny', '1.0', 'VERSION = "1.0"\n');
    database = await createTestDatabase('postgres');
    servers.push(await startServerProcess(database, env));
  });
  after(async () => {
    for (const server of servers) await server.stop();
    await database?.drop();
    killInstances(secondData());
    for (const folder of [index, secondData()]) rmSync(folder, { recursive: true, force: true });
  });
  const archived = async (): Promise<boolean> => {
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    const { rowCount } = await client.query("select 1 from shared_files where name like 'python/root/%'");
    await client.end();
    return rowCount === 1;
  };
  const runs = async (server: ServerProcess | undefined, endpoint: string): Promise<void> => {
    const path = `/v2/${endpoint}/runsync?wait=90000`;
    const ran = await server?.client().call<{ output: unknown }>('POST', path, { input: {} });
    assert.equal(ran?.body.output, '1.0', ran?.text);
  };

  test('what one server has built, the next one uses where nothing can be built any more', async () => {
    const folder = createTemporaryFolder('tiny', {
      'handler.py': HANDLER,
      'requirements.txt': 'tiny==1.0\n',
    });
    const [first] = servers;
    assert.ok(first);
    const deployed = await runBerth<{ id: string }>(['deploy', folder.path], {
      BERTH_URL: first.url,
      BERTH_API_KEY: first.key,
    });
    assert.equal(deployed.code, 0, deployed.stderr);
    await runs(first, deployed.json.id);
    await waitFor('other servers can have it', archived, 90_000);
    folder.remove();
    rmSync(index, { recursive: true });

    const second = await startServerProcess({ ...database, data: secondData() }, env);
    servers.push(second);
    await first.stop();
    killInstances(database.data);
    await runs(second, deployed.json.id);
    const [environment = ''] = globSync('python/root/*/bin/python3', { cwd: secondData() });
    assert.ok(existsSync(join(secondData(), environment)));
  });
});
