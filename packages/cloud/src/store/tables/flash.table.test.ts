import { ACCOUNT_DEFAULTS } from '../../domain/records.ts';
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { DATABASES, createTestDatabase } from '../../../../testing/src/test-database.ts';
import type { TestDatabase } from '../../../../testing/src/test-database.ts';
import { Sealer } from '../../support/crypto.ts';
import { UniqueViolation } from '../database.ts';
import type { RepoModel } from '../../domain/repo-model.ts';
import { openStore } from '../open-store.ts';
import type { AuditEntry } from '../../domain/records.ts';
import type { Store } from '../store.ts';
import type { FlashApp, FlashBuild, FlashEnvironment } from '../../domain/flash-records.ts';
import type { LoginRequest } from '../../domain/login-request.ts';

const audit: AuditEntry = {
  at: 5,
  accountId: 'one',
  keyId: null,
  interface: 'system',
  requestId: 'r',
  action: 'create',
  resource: 'flash app',
  resourceId: 'x',
  changes: [],
};
const app = (id: string, name = id): FlashApp => ({ id, accountId: 'one', name, createdAt: 1 });
const environment = (id: string, appId: string): FlashEnvironment => ({
  id,
  accountId: 'one',
  appId,
  name: id,
  activeBuildId: null,
  endpointIds: ['e1', 'e2'],
  createdAt: 2,
});
const build = (id: string, appId: string): FlashBuild => ({
  id,
  accountId: 'one',
  appId,
  objectKey: `flash/${appId}/${id}.tar.gz`,
  manifest: { deep: [1, null, 'ü'] },
  createdAt: 3,
});
const login = (id: string, expiresAt: number, key: string | null = null): LoginRequest => ({
  id,
  keyName: 'laptop',
  codeChallenge: null,
  codeChallengeMethod: null,
  status: 'PENDING',
  key,
  createdAt: 100,
  expiresAt,
});
const model: RepoModel = {
  id: 'm',
  accountId: 'one',
  owner: 'me',
  name: 'parrot',
  provider: 'p',
  status: 's',
  credentialType: null,
  credentialReference: 'r',
  versions: [{ uuid: 'u', hash: 'h', status: 'READY', metadata: { a: 1 }, createdAt: 1, updatedAt: 2 }],
  createdAt: 1,
  updatedAt: 2,
};

for (const kind of DATABASES) {
  describe(`flash, models and login requests on ${kind}`, () => {
    let place: TestDatabase;
    let store: Store;
    before(async () => {
      place = await createTestDatabase(kind);
      store = await openStore({
        database: place.url,
        data: place.data,
        poolSize: 2,
        sealer: new Sealer(Buffer.alloc(32, 7)),
        onError: (error) => assert.fail(error),
      });
      await store.accounts.insert(
        { id: 'one', name: 'one', ...ACCOUNT_DEFAULTS, createdAt: 1 },
        {
          id: 'k',
          accountId: 'one',
          name: 'k',
          hash: 'h',
          access: 'all',
          scopes: { rest: 'write', graphql: 'write', serverless: 'write' },
          endpoints: null,
          enabled: true,
          root: false,
          createdAt: 1,
          lastUsedAt: null,
          expiresAt: null,
        },
        audit,
      );
    });
    after(async () => {
      await store.close();
      await place.drop();
    });

    test('an app keeps its environments and builds, and takes them along', async () => {
      const { apps, environments, builds } = store.flash;
      await apps.insert(app('a'), audit);
      await assert.rejects(apps.insert(app('b', 'a'), audit), UniqueViolation);
      await environments.insert(environment('dev', 'a'), audit);
      await builds.insert(build('b1', 'a'), audit);
      assert.deepEqual(
        [await environments.find('one', 'dev'), await builds.find('one', 'b1')],
        [environment('dev', 'a'), build('b1', 'a')],
      );
      await environments.change('one', 'dev', (current) => ({
        record: { ...current, activeBuildId: 'b1' },
        audit,
      }));
      assert.equal((await environments.find('one', 'dev'))?.activeBuildId, 'b1');
      assert.equal(await apps.remove('one', 'a', audit), true);
      assert.deepEqual([await environments.list('one'), await builds.list('one')], [[], []]);
    });

    test('a model comes back as it was, and has its name once', async () => {
      await store.models.insert(model, audit);
      assert.deepEqual(await store.models.find('one', 'm'), model);
      await assert.rejects(store.models.insert({ ...model, id: 'n' }, audit), UniqueViolation);
    });

    test('a login request keeps its key unreadable, and goes when its time is over', async () => {
      assert.equal(await store.loginRequests.insert(login('old', 50), 1), true);
      assert.equal(await store.loginRequests.insert(login('new', 1000), 1), true);
      assert.equal(await store.loginRequests.insert(login('one too many', 1000), 1), false);
      assert.equal(await store.loginRequests.find('old'), undefined);
      await store.loginRequests.change('new', (current) => ({
        ...current,
        status: 'APPROVED',
        key: 'rpa_secret',
      }));
      assert.deepEqual(await store.loginRequests.find('new'), {
        ...login('new', 1000, 'rpa_secret'),
        status: 'APPROVED',
      });
      assert.equal(await store.loginRequests.change('nobody', (current) => current), undefined);
    });
  });
}
