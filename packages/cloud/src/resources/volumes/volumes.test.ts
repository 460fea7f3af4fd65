import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { createServiceContext } from '../../../../testing/src/service-context.ts';
import type { ServiceContext } from '../../../../testing/src/service-context.ts';
import { checkProperty } from '../../../../testing/src/property-testing.ts';
import { ProcessEngine } from '../../engines/process/process-engine.ts';
import { BerthError } from '../../support/errors.ts';
import type { Caller } from '../../domain/caller.ts';
import { Catalog } from '../catalog/catalog.ts';
import { defineDataCenter } from '../../domain/catalog/data-centers.ts';
import type { ResizeRule } from './volumes.ts';
import { resizedTo, Volumes } from './volumes.ts';

const refused = (words: RegExp) => (error: unknown) =>
  error instanceof BerthError && error.code === 'rule' && words.test(error.message);

describe('the size of a volume', () => {
  const size = fc.integer({ min: 0, max: 5000 });
  const growth = fc.constantFrom<ResizeRule>('larger', 'not-smaller');

  test('never shrinks: it becomes the requested size, or stays', async () => {
    await checkProperty(
      fc.property(size, size, growth, (current, wanted, mode) => {
        const allowed = mode === 'larger' ? wanted > current : wanted >= current;
        if (allowed) assert.equal(resizedTo(current, wanted, mode), wanted);
        else assert.throws(() => resizedTo(current, wanted, mode), refused(new RegExp(`${current} GB`)));
      }),
    );
  });

  test('stays if no size is given', async () => {
    await checkProperty(
      fc.property(size, growth, (current, mode) =>
        assert.equal(resizedTo(current, undefined, mode), current),
      ),
    );
  });

  test('after any requests is the largest accepted size', async () => {
    await checkProperty(
      fc.property(size, fc.array(fc.tuple(size, growth)), (first, requests) => {
        let current = first;
        for (const [wanted, mode] of requests) {
          const before = current;
          try {
            current = resizedTo(current, wanted, mode);
          } catch (error) {
            assert.ok(error instanceof BerthError);
          }
          assert.ok(current >= before);
        }
        assert.equal(current, Math.max(first, ...requests.map(([wanted]) => wanted)));
      }),
    );
  });
});

describe('volumes', () => {
  let context: ServiceContext;
  let volumes: Volumes;
  let ann: Caller;

  before(async () => {
    context = await createServiceContext();
    const dataCenters = [
      defineDataCenter({ id: 'LOCAL-1' }),
      defineDataCenter({ id: 'FAST-1', networkVolumeTypes: ['HIGH_PERFORMANCE'] }),
      defineDataCenter({ id: 'NONE-1', networkVolumeTypes: [] }),
    ];
    const catalog = new Catalog({
      dataCenters,
      engines: new Map([['process', new ProcessEngine({ clock: context.clock, virtualGpus: [] })]]),
      prices: { gpu: {}, cpu: {} },
    });
    volumes = new Volumes(context, catalog);
    ann = await context.account('ann');
  });
  after(() => context.close());

  test('belong to one data center; the default is its first tier', async () => {
    assert.equal(
      (await volumes.create(ann, { name: 'a', size: 10, dataCenterId: 'LOCAL-1' })).type,
      'STANDARD',
    );
    assert.equal(
      (await volumes.create(ann, { name: 'a', size: 10, dataCenterId: 'LOCAL-1', type: 'HIGH_PERFORMANCE' }))
        .type,
      'HIGH_PERFORMANCE',
    );
    assert.equal(
      (await volumes.create(ann, { name: 'a', size: 10, dataCenterId: 'FAST-1' })).type,
      'HIGH_PERFORMANCE',
    );
    assert.equal((await volumes.list(ann)).length, 3);
  });

  test('need a data center that exists and has the tier; the error lists the choices', async () => {
    await assert.rejects(
      volumes.create(ann, { name: 'a', size: 10, dataCenterId: 'EU-RO-1' }),
      refused(/"EU-RO-1" does not exist here; available: LOCAL-1, FAST-1, NONE-1/),
    );
    await assert.rejects(
      volumes.create(ann, { name: 'a', size: 10, dataCenterId: 'FAST-1', type: 'STANDARD' }),
      refused(/no STANDARD network volumes; available: HIGH_PERFORMANCE/),
    );
    await assert.rejects(
      volumes.create(ann, { name: 'a', size: 10, dataCenterId: 'NONE-1' }),
      refused(/available: none/),
    );
    assert.equal((await volumes.list(ann)).length, 3);
  });

  test('can be renamed and enlarged, with an audit entry', async () => {
    const made = await volumes.create(ann, { name: 'before', size: 10, dataCenterId: 'LOCAL-1' });
    assert.deepEqual(await volumes.update(ann, made.id, { name: 'after' }, 'larger'), {
      ...made,
      name: 'after',
    });
    assert.deepEqual(await volumes.update(ann, made.id, { size: 10 }, 'not-smaller'), {
      ...made,
      name: 'after',
    });
    assert.deepEqual(await volumes.update(ann, made.id, { name: 'grown', size: 20 }, 'larger'), {
      ...made,
      name: 'grown',
      size: 20,
    });
    await assert.rejects(
      volumes.update(ann, made.id, { name: 'lost', size: 20 }, 'larger'),
      refused(/greater than the current size of 20 GB/),
    );
    await assert.rejects(
      volumes.update(ann, made.id, { name: 'lost', size: 19 }, 'not-smaller'),
      refused(/cannot shrink/),
    );
    assert.deepEqual(await volumes.get(ann, made.id), { ...made, name: 'grown', size: 20 });
    const [latest] = await context.store.audit.list(ann.accountId, { limit: 1 });
    assert.deepEqual(latest?.changes, [
      { field: 'name', from: 'after', to: 'grown' },
      { field: 'size', from: 10, to: 20 },
    ]);
  });

  test('that are deleted or of another account are not found', async () => {
    const made = await volumes.create(ann, { name: 'a', size: 10, dataCenterId: 'LOCAL-1' });
    const bob = await context.account('bob');
    const missing = (error: unknown): boolean => error instanceof BerthError && error.code === 'not-found';
    await assert.rejects(volumes.get(bob, made.id), missing);
    await assert.rejects(volumes.update(bob, made.id, { name: 'b' }, 'larger'), missing);
    await assert.rejects(volumes.remove(bob, made.id), missing);
    await volumes.remove(ann, made.id);
    await assert.rejects(volumes.remove(ann, made.id), missing);
  });
});
