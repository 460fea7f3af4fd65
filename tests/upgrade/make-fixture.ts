// Makes the fixture of one released version for tests/upgrade.test.ts:
//   node tests/upgrade/make-fixture.ts CHECKOUT NAME POSTGRES_URL
// CHECKOUT is a clone of that version with its packages installed. Its server runs on SQLite and then on
// PostgreSQL, is filled over the API and killed. pg_dump must be of the PostgreSQL server's version; 15 or
// older is best, because the test restores the dump into any newer one.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { Client } from 'pg';
import { createApiClient } from '../../packages/testing/src/api-client.ts';
import { ROOT_KEY } from '../../packages/testing/src/server-process.ts';
import { SERVER_ENV, fillServer, readEverything } from './upgrade-fixture.ts';

const [, , checkout, name, postgresUrl] = process.argv;
if (checkout === undefined || name === undefined || postgresUrl === undefined)
  throw new Error('usage: make-fixture.ts CHECKOUT NAME POSTGRES_URL');
const folder = fileURLToPath(new URL(`fixtures/${name}/`, import.meta.url));
mkdirSync(folder, { recursive: true });

await makeFixture('sqlite', '');
const database = `berth_upgrade_${process.pid}`;
const administrator = new Client({ connectionString: postgresUrl });
await administrator.connect();
await administrator.query(`create database ${database}`);
const url = Object.assign(new URL(postgresUrl), { pathname: `/${database}` }).href;
await makeFixture('postgres', url);
const dump = execFileSync('pg_dump', ['--no-owner', '--inserts', '--rows-per-insert=100', url], {
  encoding: 'utf8',
});
const statements = dump.split('\n').filter((line) => !line.startsWith('\\') && !line.startsWith('--'));
writeFileSync(join(folder, 'postgres.sql.gz'), gzipSync(statements.join('\n'), { level: 9 }));
await administrator.query(`drop database ${database} with (force)`);
await administrator.end();

async function makeFixture(kind: string, databaseUrl: string): Promise<void> {
  const data = mkdtempSync(join(tmpdir(), 'berth-upgrade-'));
  const server = spawn(
    join(checkout ?? '', 'packages/cloud/bin/berth'),
    ['up', '--port', '0', '--data', data],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { PATH: process.env['PATH'], BERTH_DATABASE_URL: databaseUrl, ...SERVER_ENV },
    },
  );
  process.once('exit', () => server.kill('SIGKILL'));
  let output = '';
  server.stdout.setEncoding('utf8');
  while (!output.includes('berth is up at')) output += String((await once(server.stdout, 'data'))[0]);
  const origin = /berth is up at (\S+)/.exec(output)?.[1];
  assert.ok(origin !== undefined);
  const client = createApiClient(origin, ROOT_KEY);
  const filled = await fillServer(client);
  const answers = await readEverything(client, filled);
  const takenAt = Date.now();
  server.kill('SIGKILL');
  await once(server, 'exit');
  const description = { madeBy: name, takenAt, filled, answers };
  writeFileSync(join(folder, `${kind}.json`), `${JSON.stringify(description, null, 1)}\n`);
  // The reserve only takes space. The origin names the very file of the database, and refuses a copy.
  const left = ['--exclude=./reserve', '--exclude=./berth.db-origin'];
  execFileSync('tar', ['-czf', join(folder, `${kind}-data.tar.gz`), '-C', data, ...left, '.']);
  rmSync(data, { recursive: true });
}
