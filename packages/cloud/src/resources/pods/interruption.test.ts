import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { check } from '../../../../../tests/support/seed.ts';
import type { Pod } from '../../store/pods.ts';
import { placeOrInterrupt } from './interruption.ts';
import { ANY_HARDWARE } from './order.ts';
import { placePod } from './placement.ts';
import type { PodSite } from './placement.ts';
import { samplePod } from './pod.sample.ts';

const TOTAL = 8;
const siteWith = (free: number): PodSite => ({ dataCenterId: 'LOCAL-1', engine: 'process', imageProblem: undefined, capacity: { cpu: { model: 'm', cores: 8, threads: 8 }, memoryInGb: 512, gpus: [{ gpuTypeId: 'G', total: TOTAL, free, virtual: true, cudaVersion: null, memoryInGb: 24 }] } });
const pods = fc.array(fc.record({ gpuCount: fc.integer({ min: 1, max: 3 }), bid: fc.integer({ min: 1, max: 5 }), interruptible: fc.boolean(), locked: fc.boolean() }), { maxLength: 6 })
  .map((drawn) => drawn.map(({ gpuCount, bid, interruptible, locked }, index): Pod => ({ ...samplePod, id: `p${index}`, compute: 'GPU', gpuTypeId: 'G', gpuCount, interruptible, bidPerGpu: interruptible ? bid : null, locked, status: 'RUNNING', createdAt: index })))
  .filter((drawn) => drawn.reduce((sum, { gpuCount }) => sum + gpuCount, 0) <= TOTAL);

describe('making room', () => {
  test('takes no more than is needed, from nobody who may stay, and only where that is enough', () =>
    check(fc.property(pods, fc.integer({ min: 1, max: TOTAL }), (running, gpuCount) => {
      const used = running.reduce((sum, one) => sum + one.gpuCount, 0);
      const mayGo = running.filter(({ interruptible, locked }) => interruptible && !locked);
      const most = TOTAL - used + mayGo.reduce((sum, one) => sum + one.gpuCount, 0);
      const attempt = () => placeOrInterrupt((sites, held) => placePod({ ...ANY_HARDWARE, gpuTypeIds: ['G'], gpuCount }, undefined, sites, held), [siteWith(TOTAL - used)], [{ dataCenterId: 'LOCAL-1', gpuTypeId: 'G', count: used }], running, 7);
      if (most < gpuCount) return void assert.throws(attempt, { code: 'capacity' });
      const { place, interrupted } = attempt();
      assert.equal(place.gpuCount, gpuCount);
      const freed = interrupted.map((one) => one.gpuCount);
      const sum = TOTAL - used + freed.reduce((total, count) => total + count, 0);
      assert.ok(sum >= gpuCount);
      for (const count of freed) assert.ok(sum - count < gpuCount, 'each of them is needed');
      for (const one of interrupted) assert.ok(mayGo.some(({ id }) => id === one.id) && one.wanted === 'stopped' && !one.settled);
    })));
});
