import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { checkProperty } from '../../../../testing/src/property-testing.ts';
import { findGpuPool, GPU_POOLS } from './gpu-pools.ts';
import { GPU_TYPES } from './gpu-types.ts';
import { sampleCatalogSnapshot } from '../../resources/endpoints/endpoint.fixture.ts';
import type { GpuSelection } from './gpu-selection.ts';
import {
  ANY_GPU,
  eligibleGpuTypes,
  formatGpuIds,
  gpuFindings,
  isAnyGpu,
  parseGpuIds,
  parsePools,
  poolView,
  normalizeGpuIds,
} from './gpu-selection.ts';

const types = fc.uniqueArray(fc.constantFrom(...GPU_TYPES.map(({ id }) => id)), { maxLength: 6 });
const pools = fc.uniqueArray(fc.constantFrom(...GPU_POOLS.map(({ id }) => id)), { maxLength: 4 });
/** Selections that keep the rules: what is excluded is in a pool, and something is left. */
const selection = fc
  .tuple(types, pools, types)
  .map(([gpuTypeIds, gpuPools, others]): GpuSelection => {
    const inside = gpuPools.flatMap((id) => findGpuPool(id)?.gpuTypeIds ?? []);
    return { gpuTypeIds, gpuPools, excludedGpuTypes: others.filter((id) => inside.includes(id)) };
  })
  .filter((made) => isAnyGpu(made) || eligibleGpuTypes(made).length > 0);

const sorted = (ids: readonly string[]): string[] => [...ids].sort();

describe('a GPU selection', () => {
  test('within the rules has no finding', async () => {
    await checkProperty(
      fc.property(selection, (made) => assert.deepEqual(gpuFindings(made, sampleCatalogSnapshot), [])),
    );
  });

  test('contains the same types when written as pools', async () => {
    await checkProperty(
      fc.property(selection, (made) => {
        const {
          pools: gpuPools,
          excludedTypes: excludedGpuTypes,
          unpooledTypes: gpuTypeIds,
        } = poolView(made);
        assert.deepEqual(
          sorted(eligibleGpuTypes({ gpuPools, excludedGpuTypes, gpuTypeIds })),
          sorted(eligibleGpuTypes(made)),
        );
      }),
    );
  });

  test('contains the same types after formatting and parsing', async () => {
    await checkProperty(
      fc.property(selection, (made) => {
        const read = parseGpuIds(formatGpuIds(made));
        assert.deepEqual(sorted(eligibleGpuTypes(read)), sorted(eligibleGpuTypes(made)));
        assert.deepEqual(gpuFindings(read, sampleCatalogSnapshot), []);
      }),
    );
  });

  test('keeps the order of preference', async () => {
    await checkProperty(
      fc.property(types, (gpuTypeIds) =>
        assert.deepEqual(eligibleGpuTypes({ ...ANY_GPU, gpuTypeIds }), gpuTypeIds),
      ),
    );
  });

  test('never has an excluded type that was not also asked for by name', async () => {
    await checkProperty(
      fc.property(selection, (made) => {
        for (const id of eligibleGpuTypes(made))
          assert.ok(!made.excludedGpuTypes.includes(id) || made.gpuTypeIds.includes(id));
      }),
    );
  });

  test('of one type in a pool of two is the pool without the other', () => {
    assert.equal(formatGpuIds({ ...ANY_GPU, gpuTypeIds: ['NVIDIA A40'] }), 'AMPERE_48,-NVIDIA RTX A6000');
    assert.equal(formatGpuIds({ ...ANY_GPU, gpuTypeIds: ['NVIDIA GeForce RTX 4090'] }), 'ADA_24');
    assert.equal(formatGpuIds(ANY_GPU), '');
  });

  test('is read as clients write it', () => {
    assert.deepEqual(parseGpuIds(' ADA_24, AMPERE_48 ,-NVIDIA A40,,'), {
      gpuPools: ['ADA_24', 'AMPERE_48'],
      gpuTypeIds: [],
      excludedGpuTypes: ['NVIDIA A40'],
    });
    assert.deepEqual(parseGpuIds('NVIDIA A30'), {
      gpuPools: [],
      gpuTypeIds: ['NVIDIA A30'],
      excludedGpuTypes: [],
    });
  });

  test('takes a type that is in no pool for one of its own', () => {
    assert.deepEqual(parsePools(['ADA_24', 'NVIDIA GeForce RTX 3070']), {
      gpuPools: ['ADA_24'],
      gpuTypeIds: ['NVIDIA GeForce RTX 3070'],
      excludedGpuTypes: [],
    });
    assert.deepEqual(
      parsePools(['NVIDIA A40']).gpuPools,
      ['NVIDIA A40'],
      'a type that has a pool does not stand for one',
    );
  });

  test('has each type under its one name', () => {
    const spelled = normalizeGpuIds({
      gpuTypeIds: ['NVIDIA  A30', 'NVIDIA A30', ' NVIDIA RTX A30'],
      gpuPools: [' ADA_24'],
      excludedGpuTypes: [' NVIDIA A40 '],
    });
    assert.deepEqual(spelled, {
      gpuTypeIds: ['NVIDIA A30'],
      gpuPools: ['ADA_24'],
      excludedGpuTypes: ['NVIDIA A40'],
    });
  });

  test('with a mistake is refused in words that say what there is', () => {
    const cases: [Partial<GpuSelection>, RegExp][] = [
      [
        { gpuTypeIds: ['NVIDIA Nonsense'] },
        /GPU type "NVIDIA Nonsense" does not exist here; available: NVIDIA GeForce RTX 4090$/,
      ],
      [{ gpuPools: ['ADA_25'] }, /GPU pool "ADA_25" does not exist here; available: .*ADA_24/],
      [
        { gpuPools: ['ADA_24'], excludedGpuTypes: ['NVIDIA A40'] },
        /"NVIDIA A40" is in none of the pools ADA_24; their types: NVIDIA GeForce RTX 4090/,
      ],
      [{ gpuPools: ['ADA_24'], excludedGpuTypes: ['NVIDIA GeForce RTX 4090'] }, /leave none/],
      [{ gpuTypeIds: ['NVIDIA A40'], excludedGpuTypes: ['NVIDIA RTX A6000'] }, /is in none of the pools/],
    ];
    for (const [mistake, words] of cases) {
      const findings = gpuFindings({ ...ANY_GPU, ...mistake }, sampleCatalogSnapshot);
      assert.equal(findings.length, 1, findings.join('\n'));
      assert.match(findings[0] ?? '', words);
    }
  });

  test('may name a type that only this installation has', () => {
    const own = {
      id: 'Some New GPU',
      name: 'New',
      memoryInGb: 8,
      pool: null,
      manufacturer: 'NVIDIA' as const,
    };
    assert.deepEqual(
      gpuFindings(
        { ...ANY_GPU, gpuTypeIds: [own.id] },
        { ...sampleCatalogSnapshot, gpuTypes: [...GPU_TYPES, own] },
      ),
      [],
    );
  });
});
