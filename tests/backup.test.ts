import assert from 'node:assert/strict';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { runBerth } from '../packages/testing/src/berth-command.ts';
import { createQueueEndpoint, queueEndpointClient } from '../packages/testing/src/queue-endpoint-client.ts';
import { createS3Key, createVolume } from '../packages/testing/src/s3-test-client.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../packages/testing/src/server-process.ts';
import { createTestDatabase, DATABASES } from '../packages/testing/src/test-database.ts';
import type { TestDatabase } from '../packages/testing/src/test-database.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

const ENV = { BERTH_RATE_LIMITS: 'off' };

/** Submits jobs until it is stopped. Resolves to the ids of those that were acknowledged. */
function submitJobs(run: () => Promise<string>): { acknowledged: string[]; stop(): Promise<void> } {
  const acknowledged: string[] = [];
  let over = false;
  const clients = Array.from({ length: 4 }, async () => {
    while (!over) acknowledged.push(await run());
  });
  return {
    acknowledged,
    stop: async () => {
      over = true;
      await Promise.all(clients);
    },
  };
}

for (const kind of DATABASES) {
  describe(`backup and restore, on ${kind}`, () => {
    let database: TestDatabase;
    let server: ServerProcess;
    let folder: string;
    const others: { stop(): Promise<unknown> }[] = [];
    const databases: TestDatabase[] = [];
    before(async () => {
      folder = mkdtempSync(join(tmpdir(), 'berth-backup-'));
      database = await createTestDatabase(kind, { empty: true });
      server = await startServerProcess(database, ENV);
    });
    after(async () => {
      for (const each of others) await each.stop();
      await server?.stop();
      await database?.drop();
      for (const each of databases) await each.drop();
      rmSync(folder, { recursive: true, force: true });
    });
    const berth = (...args: string[]): ReturnType<typeof runBerth> =>
      runBerth(args, { BERTH_URL: server.url, BERTH_API_KEY: server.key });
    /** An empty database and a folder that does not exist. */
    const createEmpty = async (): Promise<TestDatabase> => {
      const empty = await createTestDatabase(kind, { empty: true });
      databases.push(empty);
      rmSync(empty.data, { recursive: true });
      return empty;
    };
    const restore = (
      file: string,
      { data, url }: TestDatabase,
      ...more: string[]
    ): ReturnType<typeof runBerth> =>
      runBerth(['restore', file, '--data', data, ...(url === '' ? [] : ['--database', url]), ...more]);

    test('a backup under load holds every job that was acknowledged before, and starts elsewhere', async () => {
      const ann = await server
        .client()
        .call<{ id: string; key: string }>('POST', '/v2/accounts', { name: 'ann' });
      const annKey = ann.body.key;
      await server
        .client(annKey)
        .call('POST', '/v2/account/secrets', { name: 'token', value: 'hidden "value" ☃' });
      const jobs = await createQueueEndpoint(server.url, annKey);
      const ended = await jobs.run({ text: 'é"\\' });
      const worker = jobs.worker();
      await worker.take();
      await worker.done(ended, { output: { text: 'ü"\\n', number: 1.5 } });
      worker.close();
      const volume = await createVolume(server.client());
      writeFileSync(createFile(join(database.data, 'volumes', volume), 'file.txt'), 'content');
      const load = submitJobs(() => jobs.run({ n: 1 }));
      await waitFor('jobs come in', () => load.acknowledged.length > 100);
      const before = [...load.acknowledged];
      const file = join(folder, 'under-load.tar');
      const made = await berth('backup', file, '--volumes');
      await load.stop();
      assert.equal(made.code, 0, made.stderr);
      assert.equal(statSync(file).mode & 0o777, 0o600);
      assert.deepEqual(
        readdirSync(database.data).filter((name) => name.startsWith('backup-')),
        [],
      );

      const elsewhere = await createEmpty();
      const restored = await restore(file, elsewhere);
      assert.equal(restored.code, 0, restored.stderr);
      assert.equal(statSync(join(elsewhere.data, 'master.key')).mode & 0o777, 0o600);
      const other = await startServerProcess(elsewhere, ENV);
      others.push(other);
      const there = queueEndpointClient(other.client(annKey), jobs.id, annKey);
      for (const id of before) assert.equal((await there.status(id)).status, 'IN_QUEUE');
      const { status, output } = await there.status(ended);
      assert.deepEqual([status, output], ['COMPLETED', { text: 'ü"\\n', number: 1.5 }]);
      assert.equal(readFileSync(join(elsewhere.data, 'volumes', volume, 'file.txt'), 'utf8'), 'content');
      // It goes on: new rows follow the old ones, and what was sealed can be read.
      const next = await there.run({});
      const again = there.worker();
      assert.ok((await again.take()).id);
      again.close();
      assert.equal((await there.status(next)).status, 'IN_QUEUE');
      assert.equal(
        (await other.client(annKey).call('POST', '/v2/account/secrets', { name: 'two', value: 'x' })).status,
        201,
      );
      const audit = await other
        .client()
        .call<{ entries: { resource: string }[] }>('GET', '/v2/account/audit-log');
      assert.ok(audit.body.entries.length > 0);
    });

    test('a backup that is damaged, cut off or of the other database is refused, and nothing is written', async () => {
      const whole = join(folder, 'whole.tar');
      assert.equal((await berth('backup', whole)).code, 0);
      const empty = await createEmpty();
      const damaged = join(folder, 'damaged.tar');
      const bytes = readFileSync(whole);
      const at = bytes.indexOf('master.key') + 512;
      bytes[at] = (bytes[at] ?? 0) ^ 1;
      writeFileSync(damaged, bytes);
      const cut = join(folder, 'cut.tar');
      writeFileSync(cut, readFileSync(whole));
      truncateSync(cut, Math.floor(statSync(cut).size / 2));
      for (const [file, reason] of [
        [damaged, /is damaged: keys\/master\.key has another checksum/],
        [cut, /is not a whole backup: the archive is incomplete/],
      ] as const) {
        const refused = await restore(file, empty);
        assert.equal(refused.code, 1);
        assert.match(refused.stderr, reason);
        assert.equal(existsSync(empty.data), false);
      }
      const wrong = await runBerth([
        'restore',
        whole,
        '--data',
        empty.data,
        ...(kind === 'sqlite' ? ['--database', 'postgres://127.0.0.1:1/none'] : []),
      ]);
      assert.equal(wrong.code, 1);
      assert.match(wrong.stderr, kind === 'sqlite' ? /a backup of SQLite/ : /a backup of PostgreSQL/);

      assert.equal((await restore(whole, empty)).code, 0);
      const twice = await restore(whole, empty);
      assert.equal(twice.code, 1);
      assert.match(twice.stderr, /is not empty/);
      if (kind === 'postgres') {
        renameSync(empty.data, `${empty.data}.away`);
        const filled = await restore(whole, empty);
        assert.match(filled.stderr, /the database is not empty/);
        assert.equal(existsSync(empty.data), false);
        rmSync(`${empty.data}.away`, { recursive: true });
      }
      const replaced = await restore(whole, empty, '--replace');
      assert.equal(replaced.code, 0, replaced.stderr);
      const { before } = replaced.json as { before?: string };
      if (before !== undefined) rmSync(before, { recursive: true });
    });

    test('only the operator gets a backup, and not over a file that is there', async () => {
      const bob = await server.client().call<{ key: string }>('POST', '/v2/accounts', { name: 'bob' });
      const refused = await server.client(bob.body.key).call('GET', '/v2/backup');
      assert.equal(refused.status, 403);
      assert.equal((await server.client(bob.body.key).call('GET', '/v2/backup/status')).status, 403);
      const file = join(folder, 'there.tar');
      writeFileSync(file, 'mine');
      const nowhere = await berth('backup', join(folder, 'none/berth.tar'));
      assert.match(nowhere.stderr, /^berth: there is no folder .*none\n$/);
      const nothing = await runBerth(['restore', join(folder, 'none.tar'), '--data', join(folder, 'new')]);
      assert.match(nothing.stderr, /^berth: there is no file .*none\.tar\n$/);
      const there = await berth('backup', file);
      assert.equal(there.code, 1);
      assert.equal(readFileSync(file, 'utf8'), 'mine');
    });

    test('without keys, a restored server needs the master key', async () => {
      const file = join(folder, 'no-keys.tar');
      assert.equal((await berth('backup', file, '--no-keys')).code, 0);
      const empty = await createEmpty();
      assert.equal((await restore(file, empty)).code, 0);
      assert.equal(existsSync(join(empty.data, 'master.key')), false);
      await assert.rejects(
        startServerProcess(empty, { ...ENV, BERTH_MASTER_KEY: 'ab'.repeat(32) }),
        /sealed with another master key/,
      );
    });

    test('the server dies during a backup: no file looks complete, and the next start cleans up', async () => {
      const second = await createTestDatabase(kind, { empty: true });
      databases.push(second);
      const dying = await startServerProcess(second, ENV);
      others.push(dying);
      const volume = await createVolume(dying.client());
      truncateSync(createFile(join(second.data, 'volumes', volume), 'large'), 1024 ** 3);
      const file = join(folder, 'dying.tar');
      const making = runBerth(['backup', file, '--volumes'], {
        BERTH_URL: dying.url,
        BERTH_API_KEY: dying.key,
      });
      await waitFor('the backup is under way', () => existsSync(`${file}.partial`));
      await dying.kill();
      assert.equal((await making).code, 1);
      assert.deepEqual([existsSync(file), existsSync(`${file}.partial`)], [false, false]);
      const again = await startServerProcess(second, ENV);
      others.push(again);
      if (kind === 'sqlite')
        assert.deepEqual(
          readdirSync(second.data).filter((name) => name.startsWith('backup-')),
          [],
        );
    });

    test('scheduled backups go to a folder and a bucket, and a failure is said by doctor', async () => {
      const target = join(folder, 'scheduled');
      const second = await createTestDatabase(kind, { empty: true });
      databases.push(second);
      const scheduling = await startServerProcess(second, { ...ENV, BERTH_BACKUP_TARGET: target });
      others.push(scheduling);
      const [name = ''] = await waitFor(
        'a backup is made',
        () => existsSync(target) && nonEmpty(tarsIn(target)),
      );
      const status = await waitFor('it is said', async () => {
        const { body } = await scheduling
          .client()
          .call<{ target: string; lastAt: string | null; error: string | null }>('GET', '/v2/backup/status');
        return body.lastAt !== null && body;
      });
      assert.deepEqual([status.target, status.error], [target, null]);
      await scheduling.stop();
      assert.equal((await restore(join(target, name), await createEmpty())).code, 0);

      const bucket = await createVolume(server.client());
      const { accessId, secret } = await createS3Key(server.client());
      const toBucket = {
        ...ENV,
        BERTH_BACKUP_TARGET: `s3://${bucket}/nightly`,
        BERTH_BACKUP_S3_ENDPOINT: `${server.url}/s3`,
        BERTH_BACKUP_S3_REGION: 'LOCAL-1',
        AWS_ACCESS_KEY_ID: accessId,
      };
      const uploading = await startServerProcess(second, { ...toBucket, AWS_SECRET_ACCESS_KEY: secret });
      others.push(uploading);
      const objects = join(database.data, 'volumes', bucket, 'nightly');
      const [uploaded = ''] = await waitFor(
        'a backup is in the bucket',
        () => existsSync(objects) && nonEmpty(tarsIn(objects)),
      );
      await uploading.stop();
      assert.equal((await restore(join(objects, uploaded), await createEmpty())).code, 0);

      const failing = await startServerProcess(second, { ...toBucket, AWS_SECRET_ACCESS_KEY: 'wrong' });
      others.push(failing);
      await waitFor('it fails', async () => failing.log().includes('the scheduled backup failed'));
      const doctor = await waitFor('doctor says it', async () => {
        const ran = await runBerth(['doctor'], { BERTH_URL: failing.url, BERTH_API_KEY: failing.key });
        return ran.stdout.includes('the last one failed') && ran;
      });
      assert.match(doctor.stdout, /was refused with 403/);
    });
  });
}

describe('a data folder that was copied, on sqlite', () => {
  test('while its server ran it is refused with the reason; after it had stopped it starts', async (t) => {
    const database = await createTestDatabase('sqlite');
    const copy = { ...database, data: `${database.data}-copy` };
    t.after(async () => {
      await database.drop();
      rmSync(copy.data, { recursive: true, force: true });
    });
    let server = await startServerProcess(database, ENV);
    const jobs = await createQueueEndpoint(server.url, server.key);
    const load = submitJobs(() => jobs.run({ text: 'x'.repeat(2_000) }));
    await waitFor('jobs come in', () => load.acknowledged.length > 200);
    cpSync(database.data, copy.data, { recursive: true });
    await load.stop();
    await assert.rejects(
      startServerProcess(copy, ENV),
      /is not a whole copy: it was copied while its server ran.*berth restore/s,
    );
    // Where it is, it starts after a crash as before.
    await server.kill();
    server = await startServerProcess(database, ENV);
    await server.stop();

    rmSync(copy.data, { recursive: true });
    cpSync(database.data, copy.data, { recursive: true });
    const moved = await startServerProcess(copy, ENV);
    const there = queueEndpointClient(moved.client(), jobs.id, moved.key);
    for (const id of load.acknowledged.slice(-50)) assert.equal((await there.status(id)).status, 'IN_QUEUE');
    await moved.stop();

    // Half of the database is of another moment.
    rmSync(copy.data, { recursive: true });
    cpSync(database.data, copy.data, { recursive: true });
    const size = statSync(join(copy.data, 'berth.db')).size;
    truncateSync(join(copy.data, 'berth.db'), Math.floor(size / 2 / 4096) * 4096);
    await assert.rejects(startServerProcess(copy, ENV), /the database is damaged/);
  });
});

function createFile(folder: string, name: string): string {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, name), '');
  return join(folder, name);
}

function tarsIn(folder: string): string[] {
  return readdirSync(folder).filter((name) => name.endsWith('.tar'));
}

function nonEmpty(names: string[]): string[] | false {
  return names.length > 0 && names;
}
