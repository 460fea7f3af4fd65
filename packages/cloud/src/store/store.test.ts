import type { AuditedAction } from '../domain/audit.ts';
import { ACCOUNT_DEFAULTS } from '../domain/records.ts';
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { DATABASES, createTestDatabase } from '../../../testing/src/test-database.ts';
import type { TestDatabase } from '../../../testing/src/test-database.ts';
import { Sealer } from '../support/crypto.ts';
import { UniqueViolation } from './database.ts';
import type { Database } from './database.ts';
import { migrate } from './migrations/migrate.ts';
import { migrations } from './migrations/migrations.ts';
import { openDatabase, openStore, createStore } from './open-store.ts';
import type {
  Account,
  ApiKey,
  AuditEntry,
  NetworkVolume,
  Registry,
  S3Key,
  Secret,
  Template,
} from '../domain/records.ts';
import { execute, rows, sql } from './sql.ts';
import type { Store } from './store.ts';

const sealer = new Sealer(Buffer.alloc(32, 7));
const onError = (error: Error): never => {
  throw error;
};

const account = (id: string): Account => ({ id, name: `account ${id}`, ...ACCOUNT_DEFAULTS, createdAt: 1 });
const apiKey = (id: string, accountId: string): ApiKey => ({
  id,
  accountId,
  name: id,
  hash: `hash of ${id}`,
  access: 'restricted',
  scopes: { rest: 'read', graphql: 'none', serverless: 'write' },
  endpoints: ['e1'],
  enabled: true,
  root: false,
  createdAt: 1,
  lastUsedAt: null,
  expiresAt: 99,
});
const audit = (accountId: string, resourceId: string, action: AuditedAction = 'create'): AuditEntry => ({
  at: 5,
  accountId,
  keyId: null,
  interface: 'system',
  requestId: 'r',
  action,
  resource: 'secret',
  resourceId,
  changes: [{ field: 'name', from: 'a', to: 'b' }],
});
const volume = (id: string, accountId: string, createdAt = 1): NetworkVolume => ({
  id,
  accountId,
  name: 'data',
  size: 10,
  dataCenterId: 'LOCAL-1',
  type: 'STANDARD',
  createdAt,
});
const template = (id: string, accountId: string, name = id): Template => ({
  id,
  accountId,
  name,
  image: 'image',
  args: 'run "this one"',
  containerDisk: 5,
  volumeSize: 0,
  volumePath: '/workspace',
  ports: ['80/http'],
  portLabels: [{ port: '80', name: 'web' }],
  env: { TOKEN: 'hidden value', EMPTY: '', ünï: '☃' },
  registryId: null,
  category: 'CPU',
  public: false,
  serverless: true,
  readme: '# hello',
  startSsh: true,
  startJupyter: false,
  startScript: 'go',
  advancedStart: true,
  allowedCudaVersions: ['12.8'],
  config: { deep: [1, null] },
  createdAt: 1,
  updatedAt: 2,
});

for (const kind of DATABASES) {
  describe(`store on ${kind}`, () => {
    let place: TestDatabase;
    let database: Database;
    let store: Store;

    const insertTemplate = (record: Template): Promise<Template> =>
      store.templates.insert(record.accountId, {}, () => ({
        record,
        audit: audit(record.accountId, record.id),
      }));

    before(async () => {
      place = await createTestDatabase(kind);
      database = await openDatabase({ database: place.url, data: place.data, poolSize: 5, onError });
      await migrate(database);
      store = createStore(database, sealer);
      for (const id of ['one', 'two'])
        await store.accounts.insert(account(id), apiKey(`key ${id}`, id), audit(id, id));
    });
    after(async () => {
      await store.close();
      await place.drop();
    });

    test('keys are found by hash and by id, with every field as it was', async () => {
      assert.deepEqual(await store.keys.findByHash('hash of key one'), apiKey('key one', 'one'));
      assert.deepEqual(await store.keys.findInAnyAccount('key two'), apiKey('key two', 'two'));
      assert.equal(await store.keys.find('one', 'key two'), undefined);
      await store.keys.saveLastUsed(
        new Map([
          ['key one', 1234],
          ['gone', 1],
        ]),
      );
      assert.equal((await store.keys.findInAnyAccount('key one'))?.lastUsedAt, 1234);
    });

    test('an account name is unique, and a refused insert leaves nothing behind', async () => {
      const other = { ...account('three'), name: 'account one' };
      await assert.rejects(
        store.accounts.insert(other, apiKey('key three', 'three'), audit('three', 'three')),
        UniqueViolation,
      );
      assert.equal(await store.keys.findInAnyAccount('key three'), undefined);
      assert.deepEqual(await store.audit.list('three', { limit: 10 }), []);
    });

    test('a template is read with every field, and its environment is stored encrypted', async () => {
      const kept = template('t1', 'one');
      await insertTemplate(kept);
      assert.deepEqual(await store.templates.find('one', 't1'), kept);
      assert.deepEqual(await store.templates.findByName('one', 't1'), kept);
      const raw = await database.read(() => rows<Record<string, unknown>>(sql`select * from templates`));
      assert.ok(!JSON.stringify(raw).includes('hidden value'));
    });

    test('names are unique within an account and free across accounts', async () => {
      await insertTemplate(template('t2', 'one', 'same'));
      await insertTemplate(template('t3', 'two', 'same'));
      await assert.rejects(insertTemplate(template('t4', 'one', 'same')), UniqueViolation);
      await insertTemplate(template('t5', 'one', 'other'));
      const renamed = store.templates.change('one', 't5', {}, (current) => ({
        record: { ...current, name: 'same' },
        audit: audit('one', 't5', 'update'),
      }));
      await assert.rejects(renamed, UniqueViolation);
      assert.equal((await store.templates.find('one', 't5'))?.name, 'other');
    });

    test('nothing of another account is seen, changed or removed', async () => {
      await store.volumes.insert(volume('v1', 'one'), audit('one', 'v1'));
      assert.equal(await store.volumes.find('two', 'v1'), undefined);
      assert.equal(
        await store.volumes.change('two', 'v1', (record) => ({ record, audit: audit('two', 'v1') })),
        undefined,
      );
      assert.equal(await store.volumes.remove('two', 'v1', audit('two', 'v1')), false);
      assert.deepEqual(await store.volumes.list('two'), []);
      assert.ok(await store.volumes.find('one', 'v1'));
    });

    test('a refusal inside a change leaves the record as it was, and no audit entry', async () => {
      const before = await store.audit.list('one', { limit: 1000 });
      const refused = store.volumes.change('one', 'v1', () => {
        throw new Error('refused');
      });
      await assert.rejects(refused, /refused/);
      assert.deepEqual(await store.volumes.find('one', 'v1'), volume('v1', 'one'));
      assert.equal((await store.audit.list('one', { limit: 1000 })).length, before.length);
    });

    test('changes that meet are all counted', async () => {
      await store.volumes.insert({ ...volume('v2', 'one'), size: 0 }, audit('one', 'v2'));
      const grow = (): Promise<unknown> =>
        store.volumes.change('one', 'v2', (current) => ({
          record: { ...current, size: current.size + 1 },
          audit: audit('one', 'v2', 'update'),
        }));
      await Promise.all(Array.from({ length: 40 }, grow));
      assert.equal((await store.volumes.find('one', 'v2'))?.size, 40);
    });

    test('a list is newest first and goes on where a page ended, also between equal times', async () => {
      for (const [index, at] of [5, 7, 7, 7, 9].entries())
        await store.volumes.insert(volume(`p${index}`, 'two', at), audit('two', `p${index}`));
      const all = (await store.volumes.list('two')).map(({ id }) => id);
      const seen: string[] = [];
      let after: { createdAt: number; id: string } | undefined;
      do {
        const page = await store.volumes.list('two', { limit: 2, ...(after !== undefined && { after }) });
        seen.push(...page.map(({ id }) => id));
        after = page.at(-1);
      } while (after !== undefined);
      assert.deepEqual(seen, all);
      assert.equal(all[0], 'p4');
      assert.equal(all.at(-1), 'p0');
    });

    test('registry credentials are stored encrypted; a removed registry is cleared in templates', async () => {
      const kept: Registry = {
        id: 'r1',
        accountId: 'one',
        name: 'hub',
        username: 'some user',
        password: 'some password',
        createdAt: 1,
      };
      await store.registries.insert(kept, audit('one', 'r1'));
      await insertTemplate({ ...template('t6', 'one'), registryId: 'r1' });
      assert.deepEqual(await store.registries.find('one', 'r1'), kept);
      const raw = JSON.stringify(await database.read(() => rows(sql`select * from registries`)));
      assert.ok(!raw.includes('some user') && !raw.includes('some password'));
      assert.equal(await store.registries.remove('one', 'r1', audit('one', 'r1', 'delete')), true);
      assert.equal((await store.templates.find('one', 't6'))?.registryId, null);
    });

    test('a secret shows everything but its value, which leaves only by name', async () => {
      const kept: Secret = {
        id: 's1',
        accountId: 'one',
        name: 'token',
        description: null,
        createdAt: 1,
        updatedAt: 1,
        valueUpdatedAt: 1,
      };
      await store.secrets.insert(kept, 'the value', audit('one', 's1'));
      assert.deepEqual(await store.secrets.find('one', 's1'), kept);
      assert.deepEqual(
        await store.secrets.findValues('one', ['token', 'missing']),
        new Map([['token', 'the value']]),
      );
      assert.deepEqual(await store.secrets.findValues('two', ['token']), new Map());
      await store.secrets.change('one', 's1', (current) => ({
        record: { ...current, description: 'words' },
        audit: audit('one', 's1', 'update'),
      }));
      assert.deepEqual(await store.secrets.findValues('one', ['token']), new Map([['token', 'the value']]));
      await store.secrets.change('one', 's1', (record) => ({
        record,
        value: 'another',
        audit: audit('one', 's1', 'update'),
      }));
      assert.deepEqual(await store.secrets.findValues('one', ['token']), new Map([['token', 'another']]));
      assert.ok(
        !JSON.stringify(await database.read(() => rows(sql`select * from secrets`))).includes('another'),
      );
      await assert.rejects(
        store.secrets.insert({ ...kept, id: 's2' }, 'x', audit('one', 's2')),
        UniqueViolation,
      );
    });

    test('S3 keys are found with their secret, which is stored encrypted', async () => {
      const kept: S3Key = {
        id: 'user_one',
        accountId: 'one',
        name: 'sync',
        access: 'read-only',
        createdAt: 3,
        lastUsedAt: null,
        expiresAt: 77,
      };
      await store.s3Keys.insert(kept, 'rps_hidden', audit('one', 'user_one'));
      await store.s3Keys.insert(
        { ...kept, id: 'user_two', createdAt: 4, expiresAt: null, access: 'all' },
        'rps_other',
        audit('one', 'user_two'),
      );
      assert.deepEqual(await store.s3Keys.findWithSecret('user_one'), { key: kept, secret: 'rps_hidden' });
      assert.equal(await store.s3Keys.findWithSecret('user_nobody'), undefined);
      assert.deepEqual(
        (await store.s3Keys.list('one')).map(({ id }) => id),
        ['user_two', 'user_one'],
      );
      assert.deepEqual(await store.s3Keys.list('two'), []);
      assert.ok(
        !JSON.stringify(await database.read(() => rows(sql`select * from s3_keys`))).includes('rps_hidden'),
      );
      await store.s3Keys.saveLastUsed(
        new Map([
          ['user_one', 55],
          ['gone', 1],
        ]),
      );
      assert.equal((await store.s3Keys.findWithSecret('user_one'))?.key.lastUsedAt, 55);
      assert.equal(await store.s3Keys.remove('two', 'user_one', audit('two', 'user_one', 'revoke')), false);
      assert.equal(await store.s3Keys.remove('one', 'user_one', audit('one', 'user_one', 'revoke')), true);
      assert.equal(await store.s3Keys.findWithSecret('user_one'), undefined);
    });

    test('public templates are found from everywhere', async () => {
      await insertTemplate({ ...template('open', 'one'), public: true });
      assert.equal((await store.templates.findPublic('open'))?.accountId, 'one');
      assert.equal(await store.templates.findPublic('t1'), undefined);
      assert.deepEqual(
        (await store.templates.listPublic(10)).map(({ id }) => id),
        ['open'],
      );
    });

    test('the audit log is newest first and pages backwards', async () => {
      const entries = await store.audit.list('one', { limit: 3 });
      assert.equal(entries.length, 3);
      assert.ok(entries[0] !== undefined && entries[2] !== undefined && entries[0].id > entries[2].id);
      assert.deepEqual(entries[0].changes, [{ field: 'name', from: 'a', to: 'b' }]);
      const older = await store.audit.list('one', { limit: 1, before: entries[2].id });
      assert.ok((older[0]?.id ?? 0) < entries[2].id);
    });

    test('SSH keys are replaced as a whole', async () => {
      const changed = await store.accounts.change('one', (current) => ({
        record: { ...current, sshKeys: [...current.sshKeys, 'ssh-ed25519 AAAA me'] },
        audit: audit('one', 'one', 'update'),
      }));
      assert.deepEqual(changed?.sshKeys, ['ssh-ed25519 AAAA me']);
      assert.deepEqual((await store.accounts.find('one'))?.sshKeys, ['ssh-ed25519 AAAA me']);
      assert.equal(
        await store.accounts.change('nobody', (record) => ({ record, audit: audit('one', 'x') })),
        undefined,
      );
    });
  });

  describe(`schema on ${kind}`, () => {
    test('migrations run once, also when several servers start together, and a newer schema is refused', async () => {
      const place = await createTestDatabase(kind, { empty: true });
      try {
        const open = (): Promise<Database> =>
          openDatabase({ database: place.url, data: place.data, poolSize: 2, onError });
        // A SQLite file has one server.
        const databases = await Promise.all(kind === 'sqlite' ? [open()] : [open(), open(), open()]);
        const ran = await Promise.all(databases.map((database) => migrate(database)));
        assert.deepEqual(ran.sort(), kind === 'sqlite' ? [migrations.length] : [0, 0, migrations.length]);
        const [first] = databases;
        assert.ok(first !== undefined);
        assert.equal(await migrate(first), 0);
        await first.write(() => execute(sql`update schema_version set version = ${migrations.length + 1}`));
        // A newer version that has only added to it.
        assert.equal(await migrate(first), 0);
        await first.write(() => execute(sql`update schema_version set minimum_version = version`));
        await assert.rejects(migrate(first), /written by a newer Berth/);
        await Promise.all(databases.map((database) => database.close()));
      } finally {
        await place.drop();
      }
    });

    test('a failed migration leaves the schema as it was', async () => {
      const place = await createTestDatabase(kind, { empty: true });
      try {
        const database = await openDatabase({ database: place.url, data: place.data, poolSize: 2, onError });
        await assert.rejects(
          migrate(database, [
            { name: 'half', statements: ['create table half (id text)', 'create nonsense'] },
          ]),
        );
        await assert.rejects(database.read(() => rows(sql`select * from half`)));
        assert.equal(await migrate(database), migrations.length);
        await database.close();
      } finally {
        await place.drop();
      }
    });

    test('another master key is refused before any harm', async () => {
      const place = await createTestDatabase(kind, { empty: true });
      const options = { database: place.url, data: place.data, poolSize: 2, onError };
      try {
        await (await openStore({ ...options, sealer })).close();
        await (await openStore({ ...options, sealer })).close();
        await assert.rejects(
          openStore({ ...options, sealer: new Sealer(Buffer.alloc(32, 8)) }),
          /another master key/,
        );
      } finally {
        await place.drop();
      }
    });
  });
}
