import { ACCOUNT_DEFAULTS } from '../domain/records.ts';
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { DATABASES, createTestDatabase } from '../../../testing/src/test-database.ts';
import type { TestDatabase } from '../../../testing/src/test-database.ts';
import { samplePod } from '../domain/pods/pod.fixture.ts';
import { sampleWorker } from '../compute/workers/worker.fixture.ts';
import { sampleEndpoint } from '../resources/endpoints/endpoint.fixture.ts';
import { Sealer } from '../support/crypto.ts';
import { openStore } from './open-store.ts';
import type { ApiKey, AuditEntry } from '../domain/records.ts';
import type { Store } from './store.ts';
import type { Pod } from '../domain/pods/pod-record.ts';

const audit = (resourceId: string): AuditEntry => ({
  at: 5,
  accountId: 'a',
  keyId: null,
  interface: 'system',
  requestId: 'r',
  action: 'create',
  resource: 'pod',
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

/** Every field with a value of its own. */
const whole: Pod = {
  ...samplePod,
  id: 'whole',
  name: 'ünï ☃',
  compute: 'GPU',
  cloud: 'COMMUNITY',
  args: 'run "it"',
  containerDisk: 7,
  ports: ['80/http', '70000/tcp'],
  env: { TOKEN: 'hidden value', EMPTY: '', ünï: '☃' },
  registryId: 'r',
  interruptible: true,
  bidPerGpu: 0.25,
  locked: true,
  globalNetworking: true,
  startSsh: true,
  startJupyter: true,
  templateId: 't',
  volumeSize: 20,
  volumePath: '/data',
  networkVolumeId: 'v',
  gpuTypeId: 'GPU',
  gpuCount: 2,
  cpuFlavorId: null,
  vcpuCount: 8,
  memoryInGb: 32.5,
  cudaVersion: '12.8',
  costPerHour: 0.69,
  stopAfter: 1_900_000_000_000,
  terminateAfter: 1_900_000_000_001,
  wanted: 'stopped',
  generation: 3,
  status: 'ERROR',
  statusDetail: 'why',
  statusChangedAt: 1_800_000_000_000,
  settled: true,
  handle: '{"a":1}',
  instanceGeneration: 2,
  startedAt: 4,
  endedAt: 5,
  exitCode: 137,
  createdAt: 6,
  updatedAt: 7,
  clusterId: 'c',
  membership: {
    rank: 1,
    size: 3,
    role: 'RAY_WORKER',
    address: '10.65.0.3',
    primaryAddress: '10.65.0.2',
    primaryPort: 29_400,
    subnet: '10.65.0.0/24',
  },
};

for (const kind of DATABASES) {
  describe(`pods in the store, on ${kind}`, () => {
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
    const add = (fields: Partial<Pod>): Promise<Pod> => {
      const record = { ...samplePod, ...fields };
      return store.pods.insert(record.accountId, {}, () => ({ record, audit: audit(record.id) }));
    };

    test('keep every field, and belong to one account', async () => {
      await add(whole);
      assert.deepEqual(await store.pods.find('a', 'whole'), whole);
      assert.equal(await store.pods.find('b', 'whole'), undefined);
      assert.deepEqual(await store.pods.findInAnyAccount('whole'), whole);
      assert.equal(await store.pods.change('b', 'whole', {}, () => assert.fail('not theirs')), undefined);
    });

    test('change whole, or not at all where it is refused', async () => {
      await add({ id: 'changing' });
      const changed = await store.pods.change('a', 'changing', {}, (current) => ({
        record: { ...current, name: 'changed' },
        audit: audit('changing'),
      }));
      assert.equal(changed?.name, 'changed');
      await assert.rejects(
        store.pods.change('a', 'changing', {}, () => {
          throw new Error('refused');
        }),
        /refused/,
      );
      assert.equal((await store.pods.observe('changing', () => undefined))?.name, 'changed');
      await Promise.all(
        Array.from({ length: 10 }, () =>
          store.pods.observe('changing', (current) => ({ ...current, generation: current.generation + 1 })),
        ),
      );
      assert.equal((await store.pods.findInAnyAccount('changing'))?.generation, 11);
    });

    test('are found by what is left to do about them', async () => {
      await add({ id: 'rests', status: 'RUNNING', settled: true });
      await add({ id: 'off', status: 'EXITED', wanted: 'stopped', settled: true });
      await add({ id: 'goes', status: 'TERMINATED', wanted: 'terminated', settled: false });
      assert.deepEqual(await store.pods.listUnreconciled(), ['changing', 'goes']);
      assert.deepEqual(
        (await store.pods.listActive()).map(({ id }) => id),
        ['changing', 'goes', 'rests'],
      );
      assert.equal(await store.pods.find('a', 'goes'), undefined);
      assert.equal(
        (await store.pods.list('a')).some(({ id }) => id === 'goes'),
        false,
      );
      await store.pods.deleteTerminated(10);
      assert.notEqual(await store.pods.findInAnyAccount('goes'), undefined, 'not before it is settled');
      await store.pods.observe('goes', (current) => ({ ...current, settled: true }));
      await store.pods.deleteTerminated(10);
      assert.equal(await store.pods.findInAnyAccount('goes'), undefined);
    });

    test('are found when their time has come; a lock and a stop hold that off', async () => {
      assert.equal(await store.pods.nextDueAt(), null);
      await add({ id: 'due', stopAfter: 100, terminateAfter: 200 });
      await add({ id: 'due-locked', stopAfter: 50, locked: true });
      await add({ id: 'due-stopped', stopAfter: 50, terminateAfter: 300, wanted: 'stopped' });
      assert.equal(await store.pods.nextDueAt(), 100);
      assert.deepEqual(
        (await store.pods.listDue(99)).map(({ id }) => id),
        [],
      );
      assert.deepEqual(
        (await store.pods.listDue(300)).map(({ id }) => id),
        ['due', 'due-stopped'],
      );
    });

    test('list the GPUs in use, together with those of workers', async () => {
      await add({ id: 'g1', gpuTypeId: 'X', gpuCount: 2, status: 'STARTING' });
      await add({
        id: 'g2',
        gpuTypeId: 'X',
        gpuCount: 1,
        status: 'EXITED',
        wanted: 'stopped',
        settled: true,
      });
      await store.workers.saveWorker({
        id: 'w',
        accountId: 'a',
        endpointId: 'e',
        version: 1,
        dataCenterId: 'LOCAL-1',
        image: 'i',
        gpuTypeId: 'X',
        gpuCount: 3,
        cpuFlavorId: null,
        vcpuCount: 12,
        containerDisk: 5,
        templateId: null,
        state: 'ready',
        handle: null,
        createdAt: 1,
        startedAt: null,
        imageReadyAt: null,
        readyAt: null,
        firstJobAt: null,
        endedAt: null,
        exitCode: null,
        reason: null,
      });
      let held: unknown;
      await store.pods.insert('a', { needsPlacement: true }, (references) => {
        held = references.gpusInUse;
        return { record: { ...samplePod, id: 'g3' }, audit: audit('g3') };
      });
      assert.deepEqual(held, [{ dataCenterId: 'LOCAL-1', gpuTypeId: 'X', count: 5 }]);
    });

    test('list those that may be interrupted, and write them with the new pod or not at all', async () => {
      const running = {
        compute: 'GPU',
        gpuTypeId: 'Y',
        gpuCount: 1,
        status: 'RUNNING',
        settled: true,
        interruptible: true,
      } as const;
      await add({ ...running, id: 'i1', accountId: 'b' });
      await add({ ...running, id: 'i2', wanted: 'stopped', settled: false });
      await add({ ...running, id: 'i3', interruptible: false });
      const take = (id: string, fails: boolean): Promise<Pod> =>
        store.pods.insert('a', { needsPlacement: true }, ({ interruptible, stopping }) => {
          assert.deepEqual(
            interruptible.map((one) => one.id),
            ['i1'],
          );
          assert.deepEqual(
            stopping.map((one) => one.id),
            ['i2'],
          );
          const interrupted = interruptible.map((one) => ({
            record: { ...one, wanted: 'stopped' as const, settled: false },
            audit: audit(one.id),
          }));
          return { record: { ...samplePod, id: fails ? 'i3' : id }, audit: audit(id), interrupted };
        });
      await assert.rejects(take('taker', true), 'the id is taken');
      assert.equal((await store.pods.findInAnyAccount('i1'))?.wanted, 'running');
      await take('taker', false);
      assert.equal((await store.pods.findInAnyAccount('i1'))?.wanted, 'stopped');
      let seen: unknown;
      await store.pods.insert('a', { needsPlacement: true }, ({ interruptible, stopping }) => {
        seen = [interruptible, stopping.map((one) => one.id)];
        return { record: { ...samplePod, id: 'look' }, audit: audit('look') };
      });
      assert.deepEqual(seen, [[], ['i1', 'i2']]);
      await store.pods.insert('a', {}, ({ interruptible, stopping }) => {
        seen = [interruptible, stopping];
        return { record: { ...samplePod, id: 'no-look' }, audit: audit('no-look') };
      });
      assert.deepEqual(seen, [[], []], 'only where hardware is taken');
    });

    test('keep their volume and their credentials from being removed', async () => {
      await store.volumes.insert(
        {
          id: 'vol',
          accountId: 'a',
          name: 'v',
          size: 1,
          dataCenterId: 'LOCAL-1',
          type: 'STANDARD',
          createdAt: 1,
        },
        audit('vol'),
      );
      await store.registries.insert(
        { id: 'reg', accountId: 'a', name: 'r', username: 'u', password: 'p', createdAt: 1 },
        audit('reg'),
      );
      let references: unknown;
      await store.pods.insert('a', { volumeId: 'vol', registryId: 'reg' }, ({ volume, registryFound }) => {
        references = [volume?.id, registryFound];
        return {
          record: { ...samplePod, id: 'user', networkVolumeId: 'vol', registryId: 'reg' },
          audit: audit('user'),
        };
      });
      assert.deepEqual(references, ['vol', true]);
      await assert.rejects(store.volumes.remove('a', 'vol', audit('vol')), { code: 'in-use' });
      await assert.rejects(store.registries.remove('a', 'reg', audit('reg')), { code: 'in-use' });
      await store.pods.observe('user', (current) => ({ ...current, wanted: 'terminated' }));
      assert.equal(await store.volumes.remove('a', 'vol', audit('vol')), true);
      assert.equal(await store.registries.remove('a', 'reg', audit('reg')), true);
    });

    test('count against limits with what workers, endpoints and volumes take, by account', async () => {
      const accountId = 'c';
      await store.accounts.insert(
        { id: accountId, name: accountId, ...ACCOUNT_DEFAULTS, createdAt: 1 },
        key('key c', accountId),
        audit(accountId),
      );
      const before = await store.overview.reserved();
      await add({ id: 'runs', accountId, wanted: 'running', gpuCount: 2 });
      await add({ id: 'stopped', accountId, wanted: 'stopped', gpuCount: 4 });
      await add({ id: 'gone', accountId, wanted: 'terminated', gpuCount: 8 });
      const endpoint = { ...sampleEndpoint, accountId, workersMax: 3 };
      await store.endpoints.insert(accountId, {}, () => ({ record: endpoint, audit: audit(endpoint.id) }));
      await store.workers.saveWorker(sampleWorker('live', { accountId, gpuCount: 1 }));
      await store.workers.saveWorker(sampleWorker('ended', { accountId, gpuCount: 1, endedAt: 9 }));
      const volume = { id: 'v1', accountId, name: 'v', size: 10, dataCenterId: 'LOCAL-1', createdAt: 1 };
      await store.volumes.insert({ ...volume, type: 'STANDARD' }, audit('v1'));
      assert.deepEqual(await store.overview.reserved(accountId), {
        pods: 2,
        workersMax: 3,
        gpus: 3,
        volumeGb: 10,
      });
      assert.deepEqual(await store.overview.reserved(), {
        pods: before.pods + 2,
        workersMax: before.workersMax + 3,
        gpus: before.gpus + 3,
        volumeGb: before.volumeGb + 10,
      });
      const instances = await store.overview.instances(accountId);
      assert.deepEqual(instances.map(({ id, endedAt }) => `${id} ${endedAt}`).sort(), [
        'ended 9',
        'live null',
        'runs null',
        'stopped null',
      ]);
    });
  });
}
