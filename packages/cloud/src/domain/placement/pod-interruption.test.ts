import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { checkProperty } from '../../../../testing/src/property-testing.ts';
import { placeOrInterrupt } from './pod-interruption.ts';
import { ANY_HARDWARE } from '../pods/pod-input.ts';
import { placePod } from './pod-placement.ts';
import type { PodCandidate } from './pod-placement.ts';
import { samplePod } from '../pods/pod.fixture.ts';
import type { Pod } from '../pods/pod-record.ts';

const TOTAL = 8;
const siteWith = (free: number): PodCandidate => ({
  dataCenterId: 'LOCAL-1',
  engine: 'process',
  imageProblem: undefined,
  capacity: {
    cpu: { model: 'm', cores: 8, threads: 8 },
    memoryInGb: 512,
    gpus: [{ gpuTypeId: 'G', total: TOTAL, free, virtual: true, cudaVersion: null, memoryInGb: 24 }],
  },
});
const gpusOf = (some: readonly Pod[]): number => some.reduce((sum, { gpuCount }) => sum + gpuCount, 0);
const pods = fc
  .array(
    fc.record({
      gpuCount: fc.integer({ min: 1, max: 3 }),
      bid: fc.integer({ min: 1, max: 5 }),
      interruptible: fc.boolean(),
      locked: fc.boolean(),
      leaves: fc.boolean(),
    }),
    { maxLength: 6 },
  )
  .map((drawn) =>
    drawn.map(
      ({ gpuCount, bid, interruptible, locked, leaves }, index): Pod => ({
        ...samplePod,
        id: `p${index}`,
        compute: 'GPU',
        gpuTypeId: 'G',
        gpuCount,
        interruptible,
        bidPerGpu: interruptible ? bid : null,
        locked,
        status: 'RUNNING',
        wanted: leaves ? 'stopped' : 'running',
        createdAt: index,
      }),
    ),
  )
  .filter((drawn) => gpusOf(drawn) <= TOTAL);

describe('interrupting pods', () => {
  test('stops no more pods than needed, none that may not be interrupted, and only if that is enough', () =>
    checkProperty(
      fc.property(
        pods,
        fc.integer({ min: 0, max: TOTAL }),
        fc.integer({ min: 1, max: TOTAL }),
        (there, promises, gpuCount) => {
          const running = there.filter(({ wanted }) => wanted === 'running');
          const leaving = there.filter(({ wanted }) => wanted !== 'running');
          // Some of the places that are about to be free are for others, who wait for them.
          const promised = Math.min(promises, gpusOf(leaving));
          const left = TOTAL - gpusOf(running) - promised;
          const mayGo = running.filter(({ interruptible, locked }) => interruptible && !locked);
          const most = left + gpusOf(mayGo);
          const holders = {
            gpusInUse: [{ dataCenterId: 'LOCAL-1', gpuTypeId: 'G', count: gpusOf(there) + promised }],
            stopping: leaving,
            interruptible: running,
          };
          const attempt = () =>
            placeOrInterrupt(
              (sites, held) =>
                placePod({ ...ANY_HARDWARE, gpuTypeIds: ['G'], gpuCount }, undefined, sites, held),
              [siteWith(TOTAL - gpusOf(there))],
              holders,
              7,
            );
          if (most < gpuCount) return void assert.throws(attempt, { code: 'capacity' });
          const { placement, interrupted } = attempt();
          assert.equal(placement.gpuCount, gpuCount);
          const freed = interrupted.map((one) => one.gpuCount);
          const sum = left + gpusOf(interrupted);
          assert.ok(sum >= gpuCount);
          for (const count of freed) assert.ok(sum - count < gpuCount, 'each of them is needed');
          for (const one of interrupted)
            assert.ok(mayGo.some(({ id }) => id === one.id) && one.wanted === 'stopped' && !one.settled);
        },
      ),
    ));

  test('comes after free GPUs and after those of stopping pods', () => {
    const sites = [
      { ...siteWith(0), dataCenterId: 'FULL-1', engine: 'full' },
      { ...siteWith(1), engine: 'roomy' },
    ];
    const onFull = {
      ...samplePod,
      compute: 'GPU' as const,
      gpuTypeId: 'G',
      gpuCount: 2,
      dataCenterId: 'FULL-1',
      status: 'RUNNING' as const,
      interruptible: true,
      bidPerGpu: 1,
    };
    const held = [
      { dataCenterId: 'FULL-1', gpuTypeId: 'G', count: TOTAL },
      { dataCenterId: 'LOCAL-1', gpuTypeId: 'G', count: TOTAL - 1 },
    ];
    const holders = {
      gpusInUse: held,
      stopping: [{ ...onFull, id: 'leaves', wanted: 'stopped' as const }],
      interruptible: [{ ...onFull, id: 'stays' }],
    };
    const placeOf = (gpuCount: number): unknown => {
      const { placement, interrupted } = placeOrInterrupt(
        (at, taken) => placePod({ ...ANY_HARDWARE, gpuTypeIds: ['G'], gpuCount }, undefined, at, taken),
        sites,
        holders,
        7,
      );
      return [placement.dataCenterId, interrupted.map(({ id }) => id)];
    };
    assert.deepEqual([1, 2, 3].map(placeOf), [
      ['LOCAL-1', []],
      ['FULL-1', []],
      ['FULL-1', ['stays']],
    ]);
  });
});
