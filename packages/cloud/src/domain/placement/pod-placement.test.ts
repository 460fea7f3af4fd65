import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { checkProperty } from '../../../../testing/src/property-testing.ts';
import { ANY_HARDWARE } from '../pods/pod-input.ts';
import { placeExistingPod, placePod } from './pod-placement.ts';
import type { HardwareRequest, PodCandidate } from './pod-placement.ts';
import { samplePod } from '../pods/pod.fixture.ts';
import type { GpusInUse } from '../pods/pod-record.ts';
import type { GpuCapacity } from './engine-capacity.ts';

const gpu = (gpuTypeId: string, total: number, fields: Partial<GpuCapacity> = {}): GpuCapacity => ({
  gpuTypeId,
  total,
  free: total,
  virtual: true,
  cudaVersion: null,
  memoryInGb: 24,
  ...fields,
});
const site = (
  dataCenterId: string,
  gpus: GpuCapacity[],
  fields: Partial<PodCandidate> = {},
): PodCandidate => ({
  dataCenterId,
  engine: dataCenterId,
  capacity: { cpu: { model: 'x', cores: 8, threads: 8 }, memoryInGb: 32, gpus },
  imageProblem: undefined,
  ...fields,
});
const wish = (fields: Partial<HardwareRequest>): HardwareRequest => ({ ...ANY_HARDWARE, ...fields });
const two = [site('A', [gpu('small', 2), gpu('large', 4)]), site('B', [gpu('small', 8)])];

describe('the placement of a pod', () => {
  test('takes types and data centers in the given order, or where most GPUs are free', () => {
    assert.partialDeepStrictEqual(
      placePod(wish({ gpuTypeIds: ['large', 'small'], gpuOrder: 'custom' }), undefined, two, []),
      { dataCenterId: 'A', gpuTypeId: 'large', gpuCount: 1, vcpuCount: 4, memoryInGb: 16 },
    );
    assert.partialDeepStrictEqual(placePod(wish({ gpuTypeIds: ['large', 'small'] }), undefined, two, []), {
      dataCenterId: 'B',
      gpuTypeId: 'small',
    });
    assert.partialDeepStrictEqual(
      placePod(
        wish({ gpuTypeIds: ['small'], dataCenterIds: ['A', 'B'], dataCenterOrder: 'custom' }),
        undefined,
        two,
        [],
      ),
      { dataCenterId: 'A' },
    );
    assert.partialDeepStrictEqual(
      placePod(
        wish({ gpuTypeIds: ['small'], gpuCount: 3, dataCenterIds: ['A', 'B'], dataCenterOrder: 'custom' }),
        undefined,
        two,
        [],
      ),
      { dataCenterId: 'B' },
    );
  });

  test('does not reserve a GPU twice, and data centers of one engine share GPUs', () => {
    const held: GpusInUse[] = [{ dataCenterId: 'A', gpuTypeId: 'small', count: 2 }];
    assert.equal(placePod(wish({ gpuTypeIds: ['small'] }), undefined, two, held).dataCenterId, 'B');
    assert.throws(
      () => placePod(wish({ gpuTypeIds: ['small'], dataCenterIds: ['A'] }), undefined, two, held),
      { code: 'capacity', details: ['A: 0 of 2 small are free, 1 requested'] },
    );
    const shared = [
      site('A', [gpu('small', 2)], { engine: 'one' }),
      site('C', [gpu('small', 2)], { engine: 'one' }),
    ];
    assert.throws(
      () => placePod(wish({ gpuTypeIds: ['small'], dataCenterIds: ['C'] }), undefined, shared, held),
      { code: 'capacity' },
    );
    // The engine has counted one that is recorded as well: it is not counted twice.
    assert.equal(
      placePod(
        wish({ gpuTypeIds: ['small'] }),
        undefined,
        [site('A', [gpu('small', 2, { free: 1 })])],
        [{ dataCenterId: 'A', gpuTypeId: 'small', count: 1 }],
      ).dataCenterId,
      'A',
    );
  });

  test('follows the volume, and refuses an image that no engine runs and a data center that does not exist', () => {
    const volume = {
      id: 'v',
      accountId: 'a',
      createdAt: 1,
      name: 'v',
      size: 1,
      dataCenterId: 'B',
      type: 'STANDARD' as const,
    };
    assert.equal(placePod(wish({ gpuTypeIds: ['small'] }), volume, two, []).dataCenterId, 'B');
    assert.throws(() => placePod(wish({ dataCenterIds: ['A'] }), volume, two, []), { code: 'rule' });
    assert.throws(
      () => placePod(wish({}), undefined, [site('A', [gpu('x', 1)], { imageProblem: 'no such image' })], []),
      /no such image/,
    );
    assert.throws(() => placePod(wish({ dataCenterIds: ['C'] }), undefined, two, []), { code: 'capacity' });
  });

  test('requires the memory of a CPU pod', () => {
    const cpu = wish({
      compute: 'CPU',
      cpuFlavors: [
        { id: 'cpu3m', vcpuCount: 8 },
        { id: 'cpu3c', vcpuCount: 8 },
      ],
    });
    assert.partialDeepStrictEqual(placePod(cpu, undefined, two, []), {
      dataCenterId: 'A',
      cpuFlavorId: 'cpu3c',
      vcpuCount: 8,
      memoryInGb: 16,
      gpuTypeId: null,
    });
    assert.throws(
      () =>
        placePod(wish({ compute: 'CPU', cpuFlavors: [{ id: 'cpu3m', vcpuCount: 8 }] }), undefined, two, []),
      { code: 'capacity' },
    );
  });

  test('puts a stopped pod back where it was, with the requested number of GPUs', () => {
    const pod = {
      ...samplePod,
      compute: 'GPU' as const,
      dataCenterId: 'A',
      gpuTypeId: 'large',
      gpuCount: 2,
      cpuFlavorId: null,
      vcpuCount: 8,
      memoryInGb: 32,
    };
    assert.partialDeepStrictEqual(placeExistingPod(pod, 1, two, []), {
      dataCenterId: 'A',
      gpuTypeId: 'large',
      gpuCount: 1,
      vcpuCount: 4,
      memoryInGb: 16,
    });
    assert.partialDeepStrictEqual(placeExistingPod(pod, 0, two, []), {
      gpuTypeId: 'large',
      gpuCount: 0,
      vcpuCount: 8,
    });
    assert.throws(
      () => placeExistingPod(pod, 2, two, [{ dataCenterId: 'A', gpuTypeId: 'large', count: 3 }]),
      {
        code: 'capacity',
      },
    );
  });

  test('never gives a GPU twice, and refuses only for lack of GPUs', () =>
    checkProperty(
      fc.property(
        fc.array(
          fc.record({ type: fc.constantFrom('small', 'large'), count: fc.integer({ min: 1, max: 5 }) }),
          { maxLength: 20 },
        ),
        (asked) => {
          const held: GpusInUse[] = [];
          const left = (type: string, dataCenterId: string): number => {
            const total =
              two
                .find((one) => one.dataCenterId === dataCenterId)
                ?.capacity.gpus.find(({ gpuTypeId }) => gpuTypeId === type)?.total ?? 0;
            return (
              total -
              held
                .filter((one) => one.gpuTypeId === type && one.dataCenterId === dataCenterId)
                .reduce((sum, { count }) => sum + count, 0)
            );
          };
          for (const { type, count } of asked) {
            try {
              const place = placePod(wish({ gpuTypeIds: [type], gpuCount: count }), undefined, two, held);
              assert.ok(left(type, place.dataCenterId) >= count);
              held.push({ dataCenterId: place.dataCenterId, gpuTypeId: type, count });
            } catch (error) {
              if ((error as { code?: string }).code !== 'capacity') throw error;
              assert.ok(['A', 'B'].every((id) => left(type, id) < count));
            }
          }
        },
      ),
    ));
});
