import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { checkProperty } from '../../../../testing/src/property-testing.ts';
import type { CpuChoice } from '../records.ts';
import {
  anyCpuFlavor,
  cpuFindings,
  cpuInstanceId,
  memoryInGbOf,
  parseCpuInstanceId,
} from './cpu-selection.ts';
import { sampleCatalogSnapshot } from '../../resources/endpoints/endpoint.fixture.ts';

const choice: fc.Arbitrary<CpuChoice> = fc.record({
  id: fc.constantFrom(...sampleCatalogSnapshot.cpuFlavors.map(({ id }) => id)),
  vcpuCount: fc.constantFrom(1, 2, 4, 8, 16, 32),
});

describe('a CPU selection', () => {
  test('is the same after being written as instance ids and read again', async () => {
    await checkProperty(
      fc.property(choice, (made) => assert.deepEqual(parseCpuInstanceId(cpuInstanceId(made)), { ...made })),
    );
  });

  test('within the rules has no finding', async () => {
    await checkProperty(
      fc.property(fc.uniqueArray(choice, { minLength: 1, selector: cpuInstanceId }), (made) =>
        assert.deepEqual(cpuFindings(made, sampleCatalogSnapshot), []),
      ),
    );
  });

  test('parses the instance ids that clients use', () => {
    for (const id of ['cpu3g-1-4', 'cpu3g-4-16', 'cpu3c-8-16', 'cpu5c-2-4'])
      assert.equal(cpuInstanceId(parseCpuInstanceId(id)), id);
    assert.equal(memoryInGbOf({ id: 'cpu3g', vcpuCount: 4 }), 16);
  });

  test('without names contains every flavour that runs workers', () => {
    assert.deepEqual(anyCpuFlavor().map(cpuInstanceId), ['cpu3c-2-4', 'cpu3g-2-8', 'cpu5c-2-4', 'cpu5g-2-8']);
    assert.deepEqual(cpuFindings(anyCpuFlavor(4), sampleCatalogSnapshot), []);
  });

  test('with a mistake is refused in words that say what to change', () => {
    const cases: [CpuChoice[], RegExp][] = [
      [[], /at least one/],
      [
        [{ id: 'cpu9x', vcpuCount: 2 }],
        /CPU flavour "cpu9x" does not exist here; available: cpu3c, cpu3g, cpu5c, cpu5g$/,
      ],
      [[{ id: 'cpu3m', vcpuCount: 2 }], /"cpu3m" does not exist here/],
      [[{ id: 'cpu3c', vcpuCount: 3 }], /vcpuCount of cpu3c must be a power of two of at most 32, got 3/],
      [[{ id: 'cpu3c', vcpuCount: 64 }], /at most 32, got 64/],
      [
        [
          { id: 'cpu3c', vcpuCount: 2 },
          { id: 'cpu3c', vcpuCount: 2 },
        ],
        /listed twice/,
      ],
    ];
    for (const [mistake, words] of cases) {
      const findings = cpuFindings(mistake, sampleCatalogSnapshot);
      assert.equal(findings.length, 1, findings.join('\n'));
      assert.match(findings[0] ?? '', words);
    }
    assert.throws(() => parseCpuInstanceId('cpu3g'), /must be <flavour>-<vCPUs>-<GB of memory>/);
    assert.throws(() => parseCpuInstanceId('cpu3g-4-99'), /cpu3g-4-16/);
  });
});
