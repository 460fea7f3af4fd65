import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { ServiceContext } from '../../../../testing/src/service-context.ts';
import type { Caller } from '../../domain/caller.ts';
import { BerthError } from '../../support/errors.ts';
import type { Registries } from '../registries/registries.ts';
import type { Volumes } from '../volumes/volumes.ts';
import type { EndpointCache } from './endpoint-cache.ts';
import type { Endpoints } from './endpoints.ts';
import { createEndpointsFixture, order, plain, refusedAs } from './endpoints-service.fixture.ts';

describe('endpoints', () => {
  let context: ServiceContext;
  let endpoints: Endpoints;
  let volumes: Volumes;
  let registries: Registries;
  let directory: EndpointCache;
  let ann: Caller;
  let bob: Caller;
  let removed: string[];

  before(async () => {
    ({ context, endpoints, volumes, registries, directory, ann, bob, removed } =
      await createEndpointsFixture());
  });
  after(() => context.close());

  test('get defaults for missing fields, and are returned as created', async () => {
    const made = await endpoints.create(ann, order(plain));
    assert.match(made.id, /^[a-z0-9]{14}$/);
    assert.deepEqual(
      [
        made.workersMin,
        made.workersMax,
        made.idleTimeout,
        made.scalerType,
        made.scalerValue,
        made.executionTimeout,
      ],
      [0, 3, 5, 'QUEUE_DELAY', 4, 600_000],
    );
    assert.deepEqual(
      [made.version, made.flashboot, made.jobTtl, made.retention, made.maxRetries],
      [0, 'OFF', 86_400_000, null, 1],
    );
    assert.deepEqual(await endpoints.get(ann, made.id), made);
    assert.deepEqual(await endpoints.list(ann), [made]);
    await assert.rejects(endpoints.get(bob, made.id), refusedAs('not-found', /endpoint/));
    await assert.rejects(
      endpoints.update(bob, made.id, order({ name: 'mine' })),
      refusedAs('not-found', /endpoint/),
    );
    await assert.rejects(endpoints.remove(bob, made.id), refusedAs('not-found', /endpoint/));
  });

  test('change only in the given fields, and get a new version if new containers are needed', async () => {
    const made = await endpoints.create(ann, order(plain));
    context.clock.advance(5);
    const renamed = await endpoints.update(ann, made.id, order({ name: 'new', workersMax: 9 }));
    assert.deepEqual(renamed, { ...made, name: 'new', workersMax: 9, updatedAt: made.updatedAt + 5 });
    const rebuilt = await endpoints.update(ann, made.id, order({ image: 'python:3.13' }));
    assert.deepEqual(rebuilt, { ...renamed, image: 'python:3.13', version: 1 });
    await assert.rejects(
      endpoints.update(ann, made.id, order({ type: 'LOAD_BALANCER', scalerType: 'REQUEST_COUNT' })),
      refusedAs('rule', /type is fixed/),
    );
    await assert.rejects(
      endpoints.update(ann, made.id, order({ compute: 'GPU' })),
      refusedAs('rule', /compute is fixed/),
    );
    assert.deepEqual(await endpoints.get(ann, made.id), rebuilt);
  });

  test('run on GPUs or on CPUs; settings of the other kind are dropped', async () => {
    const gpu = await endpoints.create(
      ann,
      order({
        ...plain,
        compute: 'GPU',
        gpuTypeIds: ['NVIDIA  A30'],
        cpuFlavors: [{ id: 'cpu3c', vcpuCount: 2 }],
      }),
    );
    assert.deepEqual([gpu.gpuTypeIds, gpu.gpuCount, gpu.cpuFlavors], [['NVIDIA A30'], 1, []]);
    const cpu = await endpoints.create(
      ann,
      order({ ...plain, gpuTypeIds: ['no such thing'], gpuCount: 5, minCudaVersion: '12.8' }),
    );
    assert.deepEqual(
      [cpu.gpuTypeIds, cpu.gpuCount, cpu.minCudaVersion, cpu.cpuFlavors.length],
      [[], 0, null, 4],
    );
  });

  test('are refused with all mistakes in one error', async () => {
    const wrong = order(
      {
        ...plain,
        compute: 'GPU',
        name: '',
        gpuTypeIds: ['no such thing'],
        dataCenterIds: ['MOON-1'],
        workersMin: 4,
      },
      { networkVolumeIds: ['gone'] },
    );
    await assert.rejects(endpoints.create(ann, wrong), (error) => {
      assert.ok(error instanceof BerthError && error.code === 'rule');
      assert.equal(error.details.length, 5, error.details.join('\n'));
      return true;
    });
  });

  test('may keep a data center that was removed from the catalog', async () => {
    const made = await endpoints.create(ann, order(plain));
    await context.store.endpoints.change(ann.accountId, made.id, {}, (current) => ({
      record: { ...current, dataCenterIds: ['GONE-1'] },
      audit: {
        at: 1,
        accountId: ann.accountId,
        keyId: null,
        interface: 'system',
        requestId: 'r',
        action: 'update',
        resource: 'endpoint',
        resourceId: made.id,
        changes: [],
      },
    }));
    assert.deepEqual((await endpoints.update(ann, made.id, order({ name: 'still here' }))).dataCenterIds, [
      'GONE-1',
    ]);
    await assert.rejects(
      endpoints.update(ann, made.id, order({ dataCenterIds: ['GONE-1', 'GONE-2'] })),
      refusedAs('rule', /GONE-2/),
    );
  });

  test('mount volumes of their account, one per data center; mounted volumes cannot be deleted', async () => {
    const [here, there, another, foreign] = await Promise.all([
      volumes.create(ann, { name: 'a', size: 10, dataCenterId: 'LOCAL-1' }),
      volumes.create(ann, { name: 'b', size: 10, dataCenterId: 'EU-RO-1' }),
      volumes.create(ann, { name: 'c', size: 10, dataCenterId: 'LOCAL-1' }),
      volumes.create(bob, { name: 'd', size: 10, dataCenterId: 'LOCAL-1' }),
    ]);
    await assert.rejects(
      endpoints.create(ann, order(plain, { networkVolumeIds: [foreign.id] })),
      refusedAs('rule', /does not exist in this account/),
    );
    await assert.rejects(
      endpoints.create(ann, order(plain, { networkVolumeIds: [here.id, another.id] })),
      refusedAs('rule', /both in LOCAL-1/),
    );
    const made = await endpoints.create(
      ann,
      order(plain, { networkVolumeIds: [there.id, here.id, here.id] }),
    );
    assert.deepEqual(made.networkVolumeIds, [there.id, here.id]);
    await assert.rejects(volumes.remove(ann, here.id), refusedAs('in-use', /plain/));
    await assert.rejects(
      endpoints.update(ann, made.id, order({ dataCenterIds: ['LOCAL-1'] })),
      refusedAs('rule', /is in EU-RO-1, which is not among/),
    );
    assert.equal(
      (
        await endpoints.update(
          ann,
          made.id,
          order({ dataCenterIds: ['LOCAL-1'] }, { networkVolumeIds: [here.id] }),
        )
      ).version,
      1,
    );
    await volumes.remove(ann, there.id);
  });

  test('pull with credentials of their account only', async () => {
    const mine = await registries.create(ann, { name: 'mine', username: 'u', password: 'p' });
    const other = await registries.create(bob, { name: 'other', username: 'u', password: 'p' });
    assert.equal((await endpoints.create(ann, order(plain, { registryId: mine.id }))).registryId, mine.id);
    await assert.rejects(
      endpoints.create(ann, order(plain, { registryId: other.id })),
      refusedAs('rule', /registry/),
    );
  });

  test('publish an event when they are deleted', async () => {
    const made = await endpoints.create(ann, order(plain));
    assert.ok(await directory.find(made.id));
    await endpoints.remove(ann, made.id);
    assert.ok(removed.includes(made.id));
    assert.equal(await directory.find(made.id), undefined);
    await assert.rejects(endpoints.remove(ann, made.id), refusedAs('not-found', /endpoint/));
  });

  test('have an audit entry for every change, without values of environment variables', async () => {
    const made = await endpoints.create(ann, order({ ...plain, env: { TOKEN: 'hidden value' } }));
    await endpoints.update(ann, made.id, order({ env: { TOKEN: 'another hidden value' }, workersMax: 5 }));
    const entries = (await context.store.audit.list(ann.accountId, { limit: 2 })).map(
      ({ action, resource, resourceId, changes }) => ({ action, resource, resourceId, changes }),
    );
    assert.deepEqual(entries, [
      {
        action: 'update',
        resource: 'endpoint',
        resourceId: made.id,
        changes: [
          { field: 'env' },
          { field: 'workersMax', from: 3, to: 5 },
          { field: 'version', from: 0, to: 1 },
        ],
      },
      { action: 'create', resource: 'endpoint', resourceId: made.id, changes: [] },
    ]);
  });
});
