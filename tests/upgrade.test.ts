import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { Client } from 'pg';
import { createApiClient } from '../packages/testing/src/api-client.ts';
import type { ApiClient } from '../packages/testing/src/api-client.ts';
import { startInProcessApp } from '../packages/testing/src/in-process-app.ts';
import type { InProcessApp } from '../packages/testing/src/in-process-app.ts';
import { containerLogLines, createPod } from '../packages/testing/src/pod-client.ts';
import { queueEndpointClient } from '../packages/testing/src/queue-endpoint-client.ts';
import type { QueueEndpointClient } from '../packages/testing/src/queue-endpoint-client.ts';
import { acceleratedClock } from '../packages/testing/src/safety/accelerated-clock.ts';
import { ROOT_KEY } from '../packages/testing/src/server-process.ts';
import { DATABASES, createTestDatabase } from '../packages/testing/src/test-database.ts';
import type { DatabaseKind, TestDatabase } from '../packages/testing/src/test-database.ts';
import { IDEMPOTENT_REQUEST, RUNNING_WORKER, SERVER_ENV, readEverything } from './upgrade/upgrade-fixture.ts';
import type { Filled } from './upgrade/upgrade-fixture.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

const FIXTURES = new URL('upgrade/fixtures/', import.meta.url);

interface Fixture {
  /** When the server was killed. */
  takenAt: number;
  filled: Filled;
  answers: Record<string, { status: number; body: unknown }>;
}

for (const version of readdirSync(FIXTURES).sort())
  for (const kind of DATABASES) {
    describe(`what ${version} left behind, on ${kind}`, () => {
      const fixture = JSON.parse(fixtureFile(version, `${kind}.json`).toString()) as Fixture;
      const { filled } = fixture;
      let database: TestDatabase;
      let app: InProcessApp;
      let client: ApiClient;
      let jobs: QueueEndpointClient;
      before(async () => {
        database = await createTestDatabase(kind, { empty: true });
        await restoreFixture(version, kind, database);
        // A second after the old server was killed, whenever the test runs: nothing has expired meanwhile.
        app = await startInProcessApp(database, acceleratedClock(1, fixture.takenAt + 1000), SERVER_ENV);
        client = createApiClient(app.url, ROOT_KEY);
        jobs = queueEndpointClient(client, filled.endpointId, ROOT_KEY);
      });
      after(async () => {
        await app?.close();
        await database.drop();
      });
      const chunks = async (id: string): Promise<unknown[]> =>
        (await jobs.call<{ output: unknown }[]>('GET', `stream/${id}`)).body.map(({ output }) => output);

      test('every resource, job and record is there as it was', async () => {
        const answers = await readEverything(client, filled);
        for (const [path, before] of Object.entries(fixture.answers))
          assertIncludes(answers[path], before, path);
      });

      test('keys open what they opened, and revoked ones nothing', async () => {
        const status = async (key: string): Promise<number> =>
          (await createApiClient(client.url, key).call('GET', '/v2/templates')).status;
        assert.deepEqual([await status(filled.accountKey), await status(filled.revokedKey)], [200, 401]);
      });

      test('a secret still opens', async () => {
        const made = await createPod(client, {
          name: 'new',
          env: { TOKEN: '{{ RUNPOD_SECRET_token }}' },
          cmd: ['sh', '-c', 'echo "$TOKEN"; exec sleep 1000'],
        });
        assert.equal(made.status, 201, made.text);
        await waitFor('the pod prints it', async () =>
          (await containerLogLines(client, made.body.id)).includes('a secret value'),
        );
        assert.equal((await client.call('DELETE', `/v2/pods/${made.body.id}`)).status, 204);
      });

      test('chunks that nobody has read are there', async () => {
        assert.deepEqual(await chunks(filled.ended.streamed), [{ chunk: 1 }, { chunk: 2 }, { chunk: 3 }]);
      });

      test('the job that ran goes on, with its chunks, and ends', async () => {
        const worker = jobs.worker(RUNNING_WORKER);
        assert.equal((await worker.ping([filled.running])).status, 200);
        assert.equal((await worker.chunk(filled.running, { output: { chunk: 'second' } })).status, 200);
        assert.deepEqual(await chunks(filled.running), [{ chunk: 'first' }, { chunk: 'second' }]);
        assert.equal((await worker.done(filled.running, { output: 'after the upgrade' })).status, 200);
        const ended = await jobs.status(filled.running);
        assert.deepEqual([ended.status, ended.output], ['COMPLETED', 'after the upgrade']);
        worker.close();
      });

      test('an idempotency key still names its job', async () => {
        const again = await jobs.call('POST', 'run', IDEMPOTENT_REQUEST, { 'idempotency-key': 'once' });
        assert.equal(again.body.id, filled.idempotent, again.text);
      });

      test('queued jobs run, in their order', async () => {
        const worker = jobs.worker();
        for (const id of filled.queued) {
          const job = await worker.take();
          assert.equal(job.id, id);
          await worker.done(id, { output: job.input });
          const { status, output } = await jobs.status(id);
          assert.deepEqual([status, output], ['COMPLETED', job.input]);
        }
        assert.deepEqual((await jobs.health()).jobs.inQueue, 0);
        worker.close();
      });

      test('a failed job can be retried', async () => {
        assert.equal((await jobs.call('POST', `retry/${filled.ended.failed}`)).status, 200);
        const worker = jobs.worker();
        assert.equal((await worker.take()).id, filled.ended.failed);
        await worker.done(filled.ended.failed, { output: 'at last' });
        assert.equal((await jobs.status(filled.ended.failed)).status, 'COMPLETED');
        worker.close();
      });
    });
  }

function fixtureFile(version: string, name: string): Buffer {
  return readFileSync(new URL(`${version}/${name}`, FIXTURES));
}

async function restoreFixture(version: string, kind: DatabaseKind, database: TestDatabase): Promise<void> {
  const archive = `${database.data}.tar.gz`;
  writeFileSync(archive, fixtureFile(version, `${kind}-data.tar.gz`));
  execFileSync('tar', ['-xzf', archive, '-C', database.data, '--no-same-owner']);
  execFileSync('rm', [archive]);
  if (kind === 'sqlite') return;
  const connection = new Client({ connectionString: database.url });
  await connection.connect();
  await connection.query(gunzipSync(fixtureFile(version, 'postgres.sql.gz')).toString());
  await connection.end();
}

/** Newer versions may say more, but say again what was said. REST v1 leaves out what it once said as null. */
function assertIncludes(actual: unknown, expected: unknown, path: string): void {
  if (expected === null && actual === undefined && path.includes('/v1/')) return;
  if (typeof expected !== 'object' || expected === null) {
    assert.deepEqual(actual, expected, path);
    return;
  }
  assert.ok(typeof actual === 'object' && actual !== null, `${path} is ${JSON.stringify(actual)}`);
  if (Array.isArray(expected)) assert.equal((actual as unknown[]).length, expected.length, path);
  for (const [name, value] of Object.entries(expected))
    assertIncludes((actual as Record<string, unknown>)[name], value, `${path}.${name}`);
}
