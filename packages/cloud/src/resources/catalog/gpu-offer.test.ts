import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { type DataCenterDefinition, DEFAULT_DATA_CENTERS } from '../../domain/catalog/data-centers.ts';
import { type GpuOffer, gpuOffer, type GpuRequest } from './gpu-offer.ts';
import { unlistedGpuType } from '../../domain/catalog/gpu-types.ts';
import type { DataCenterCapacity } from './data-center-capacity.ts';
import { ZERO_PRICES, gpuPrices } from '../../domain/catalog/prices.ts';
import { type GpuCapacity, NO_CAPACITY } from '../../domain/placement/engine-capacity.ts';

const type = unlistedGpuType('NVIDIA Sample', 24);
const [local] = DEFAULT_DATA_CENTERS as [DataCenterDefinition];

function gpu(free: number, total: number, cudaVersion: string | null = '12.8'): GpuCapacity {
  return { gpuTypeId: type.id, total, free, virtual: false, cudaVersion, memoryInGb: 24 };
}

function place(id: string, ...gpus: GpuCapacity[]): DataCenterCapacity {
  return { dataCenter: { ...local, id, name: id }, capacity: { ...NO_CAPACITY, gpus } };
}

function offer(places: DataCenterCapacity[], request: GpuRequest = {}): GpuOffer {
  return gpuOffer(type, places, places, request, gpuPrices(ZERO_PRICES, type.id));
}

describe('a GPU offer', () => {
  test('of a type that is not connected is empty', () => {
    const { total, free, maxCount, maxFree, virtual, availability, dataCenters, cudaVersions } = offer([
      place('A'),
    ]);
    assert.deepEqual(
      { total, free, maxCount, maxFree, virtual, availability },
      { total: 0, free: 0, maxCount: 0, maxFree: 0, virtual: false, availability: 'NONE' },
    );
    assert.deepEqual([dataCenters, cudaVersions], [[], []]);
  });

  test('sums over machines and data centers', () => {
    const { total, free, maxCount, maxFree, availability, dataCenters } = offer([
      place('A', gpu(2, 8), gpu(1, 2)),
      place('B', gpu(0, 4)),
    ]);
    assert.deepEqual(
      { total, free, maxCount, maxFree, availability },
      { total: 14, free: 3, maxCount: 8, maxFree: 2, availability: 'MEDIUM' },
    );
    assert.deepEqual(dataCenters, [
      { id: 'A', name: 'A', availability: 'MEDIUM' },
      { id: 'B', name: 'B', availability: 'NONE' },
    ]);
  });

  test('leaves out data centers whose machines are too small', () => {
    const { availability, dataCenters } = offer([place('A', gpu(2, 2)), place('B', gpu(8, 8))], { count: 4 });
    assert.equal(availability, 'MEDIUM');
    assert.deepEqual(
      dataCenters.map(({ id }) => id),
      ['B'],
    );
  });

  test('a cluster needs at least two machines', () => {
    const two = [place('A', gpu(1, 1), gpu(1, 1))];
    assert.equal(offer(two, { products: ['CLUSTER'] }).availability, 'LOW');
    assert.equal(offer([place('A', gpu(1, 1))], { products: ['CLUSTER'] }).availability, 'NONE');
    assert.equal(offer(two, { products: ['CLUSTER', 'POD'] }).availability, 'MEDIUM');
  });

  test('lists the availability of each CUDA version, newest first', () => {
    const places = [place('A', gpu(0, 2, '12.11'), gpu(1, 2, '12.2'), gpu(4, 4, null))];
    assert.deepEqual(offer(places).cudaVersions, [
      { version: '12.11', availability: 'NONE' },
      { version: '12.2', availability: 'LOW' },
    ]);
    const narrowed = offer(places, { cuda: { minimum: '12.3' } });
    assert.deepEqual(
      [narrowed.cudaVersions, narrowed.availability, narrowed.total],
      [[{ version: '12.11', availability: 'NONE' }], 'NONE', 2],
    );
  });

  test('a filter changes the availability, not the type', () => {
    const places = [place('A', gpu(8, 8)), place('B', gpu(1, 2))];
    const narrowed = gpuOffer(type, places, places.slice(1), {}, gpuPrices(ZERO_PRICES, type.id));
    assert.deepEqual([narrowed.maxCount, narrowed.total, narrowed.availability], [8, 2, 'LOW']);
  });

  test('is NONE exactly when no machine has enough free', () => {
    const machine = fc
      .tuple(fc.nat({ max: 8 }), fc.nat({ max: 8 }))
      .map(([free, taken]) => gpu(free, free + taken));
    fc.assert(
      fc.property(
        fc.array(fc.array(machine, { maxLength: 3 }), { maxLength: 3 }),
        fc.integer({ min: 1, max: 9 }),
        (sites, count) => {
          const made = offer(
            sites.map((gpus, index) => place(`P-${index}`, ...gpus)),
            { count },
          );
          assert.equal(made.availability === 'NONE', made.maxFree < count);
          assert.equal(
            made.availability === 'NONE',
            made.dataCenters.every(({ availability }) => availability === 'NONE'),
          );
          assert.ok(made.maxFree <= made.maxCount && made.free <= made.total);
        },
      ),
    );
  });
});
