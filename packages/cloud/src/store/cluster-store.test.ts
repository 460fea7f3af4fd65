import { ACCOUNT_DEFAULTS } from '../domain/records.ts';
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { DATABASES, createTestDatabase } from '../../../testing/src/test-database.ts';
import type { TestDatabase } from '../../../testing/src/test-database.ts';
import { samplePod } from '../domain/pods/pod.fixture.ts';
import { Sealer } from '../support/crypto.ts';
import { openStore } from './open-store.ts';
import type { ApiKey, AuditEntry } from '../domain/records.ts';
import type { Store } from './store.ts';
import type { Pod } from '../domain/pods/pod-record.ts';
import type { Cluster } from '../domain/clusters/cluster-record.ts';

const audit = (resourceId: string): AuditEntry => ({
  at: 5,
  accountId: 'a',
  keyId: null,
  interface: 'system',
  requestId: 'r',
  action: 'create',
  resource: 'cluster',
  resourceId,
  changes: [],
});
const key = (id: string, accountId: string): ApiKey => ({
  id,
  accountId,
  name: id,
  hash: `hash of ${id}`,
  access: 'all',
  scopes: { rest: 'read', graphql: 'none', serverless: 'write' },
  endpoints: null,
  enabled: true,
  root: false,
  createdAt: 1,
  lastUsedAt: null,
  expiresAt: null,
});
const clusterOf = (id: string, fields: Partial<Cluster> = {}): Cluster => ({
  id,
  accountId: 'a',
  name: 'ünï ☃',
  type: 'RAY',
  gpuTypeId: 'GPU',
  gpuCountPerPod: 8,
  podCount: 3,
  templateId: null,
  dataCenterId: 'LOCAL-1',
  subnet: `10.65.${id.charCodeAt(0)}.0/24`,
  createdAt: id.charCodeAt(0),
  updatedAt: 2,
  ...fields,
});
const membersOf = ({ id, accountId, subnet, podCount }: Cluster): Pod[] =>
  Array.from({ length: podCount }, (_, rank) => ({
    ...samplePod,
    id: `${id}-${podCount - rank}`,
    accountId,
    clusterId: id,
    membership: {
      rank,
      size: podCount,
      role: 'RAY_WORKER',
      address: `x${rank}`,
      primaryAddress: 'x0',
      primaryPort: 1,
      subnet,
    },
  }));

for (const kind of DATABASES) {
  describe(`clusters in the store, on ${kind}`, () => {
    let place: TestDatabase;
    let store: Store;
    before(async () => {
      place = await createTestDatabase(kind);
      store = await openStore({
        database: place.url,
        data: place.data,
        poolSize: 5,
        sealer: new Sealer(Buffer.alloc(32, 7)),
        onError: () => undefined,
      });
      for (const id of ['a', 'b'])
        await store.accounts.insert(
          { id, name: id, ...ACCOUNT_DEFAULTS, createdAt: 1 },
          key(`key ${id}`, id),
          audit(id),
        );
    });
    after(async () => {
      await store.close();
      await place.drop();
    });
    const add = (cluster: Cluster, members = membersOf(cluster)): Promise<unknown> =>
      store.clusters.insert(cluster.accountId, { needsPlacement: true }, () => ({
        cluster,
        members,
        audit: audit(cluster.id),
      }));

    test('keep every field, with their members by rank, and belong to one account', async () => {
      const one = clusterOf('c', { templateId: 't' });
      await add(one);
      assert.deepEqual(await store.clusters.find('a', 'c'), one);
      assert.deepEqual(await store.clusters.listMembers('a', 'c'), membersOf(one));
      assert.deepEqual(
        [
          await store.clusters.find('b', 'c'),
          await store.clusters.listMembers('b', 'c'),
          await store.clusters.listMembers('b'),
        ],
        [undefined, [], []],
      );
      await add(clusterOf('d'));
      assert.deepEqual(
        (await store.clusters.list('a')).map(({ id }) => id),
        ['d', 'c'],
      );
      assert.equal((await store.clusters.listMembers('a')).length, 6);
    });

    test('are written with all of their members or not at all', async () => {
      const whole = clusterOf('e');
      const [first, ...others] = membersOf(whole);
      await assert.rejects(add(whole, [first as Pod, ...others, { ...(first as Pod), membership: null }]));
      assert.deepEqual(
        [
          await store.clusters.find('a', 'e'),
          await store.clusters.listMembers('a', 'e'),
          await store.pods.findInAnyAccount(first?.id ?? ''),
        ],
        [undefined, [], undefined],
      );
      await assert.rejects(
        store.clusters.insert('a', {}, () => {
          throw new Error('refused');
        }),
        /refused/,
      );
      await assert.rejects(
        add(clusterOf('f', { subnet: clusterOf('c').subnet })),
        'two clusters with the same addresses',
      );
      assert.equal(await store.clusters.find('a', 'f'), undefined);
    });

    test('list the subnets in use in all accounts; two created at once see each other', async () => {
      await add(clusterOf('g', { accountId: 'b' }));
      const seen: number[] = [];
      await Promise.all(
        ['h', 'i', 'j'].map((id) =>
          store.clusters.insert('a', { needsPlacement: true }, ({ subnets }) => {
            seen.push(subnets.length);
            assert.ok(subnets.includes(clusterOf('g').subnet ?? ''));
            const cluster = clusterOf(id);
            return { cluster, members: membersOf(cluster), audit: audit(id) };
          }),
        ),
      );
      assert.deepEqual(seen, [3, 4, 5]);
    });

    test('change, and go with all of their members', async () => {
      const renamed = await store.clusters.change('a', 'c', (current) => ({
        record: { ...current, name: 'renamed' },
        audit: audit('c'),
      }));
      assert.equal(renamed?.name, 'renamed');
      assert.equal(await store.clusters.change('b', 'c', () => assert.fail('not theirs')), undefined);
      const gone = (member: Pod): Pod => ({
        ...member,
        wanted: 'terminated',
        status: 'TERMINATED',
        settled: false,
      });
      assert.equal(await store.clusters.remove('b', 'c', gone, audit('c')), undefined);
      assert.deepEqual(
        (await store.clusters.remove('a', 'c', gone, audit('c')))?.map(({ wanted }) => wanted),
        ['terminated', 'terminated', 'terminated'],
      );
      assert.deepEqual(
        [
          await store.clusters.find('a', 'c'),
          await store.clusters.listMembers('a', 'c'),
          await store.clusters.remove('a', 'c', gone, audit('c')),
        ],
        [undefined, [], undefined],
      );
      assert.equal(
        (await store.pods.findInAnyAccount('c-1'))?.clusterId,
        'c',
        'a terminated pod still says where it belonged',
      );
    });
  });
}
