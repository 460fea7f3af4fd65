import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { samplePod } from '../domain/pods/pod.fixture.ts';
import { podUsage, usageRules, volumeUsage, workerUsage } from './usage-rules.ts';
import type { UsagePrices } from './usage-rules.ts';
import type { Pod } from '../domain/pods/pod-record.ts';
import type { Worker } from '../domain/endpoints/worker-record.ts';
import type { UsageChange } from '../domain/usage-records.ts';

const PRICES: UsagePrices = {
  gpu: { G: { secure: 0.4, serverless: 0.6 } },
  cpu: { cpu3c: 0.04 },
  disk: {
    container: 0.1,
    volume: 0.1,
    stoppedVolume: 0.2,
    networkVolume: 0.07,
    networkVolumeAbove1TB: 0.05,
    highPerformanceVolume: 0.14,
  },
};
const rules = usageRules(PRICES);
const pod = (fields: Partial<Pod>): Pod => ({
  ...samplePod,
  gpuTypeId: 'G',
  gpuCount: 1,
  cpuFlavorId: null,
  costPerHour: 0.4,
  containerDisk: 73,
  volumeSize: 0,
  startedAt: null,
  endedAt: null,
  wanted: 'running',
  updatedAt: 7,
  ...fields,
});
const worker: Worker = {
  id: 'w',
  accountId: 'a',
  endpointId: 'e',
  version: 1,
  dataCenterId: 'D',
  image: 'i',
  gpuTypeId: 'G',
  gpuCount: 2,
  cpuFlavorId: null,
  vcpuCount: 8,
  containerDisk: 73,
  templateId: 't',
  state: 'ready',
  handle: null,
  createdAt: 1,
  startedAt: 1_000,
  imageReadyAt: null,
  readyAt: null,
  firstJobAt: null,
  endedAt: null,
  exitCode: null,
  reason: null,
};
const summarize = (changes: UsageChange[]): unknown[][] =>
  changes.map(({ usage, at }) => [
    at,
    usage?.isRunning ?? null,
    usage?.rates.gpu ?? null,
    usage?.rates.disk ?? null,
  ]);

describe('the usage of a pod', () => {
  const running = pod({ startedAt: 5_000, volumeSize: 730 });

  test('is hardware and disks while it runs, its volume while it is stopped, nothing before and after', () => {
    assert.equal(podUsage(pod({}), PRICES.disk), null);
    assert.deepEqual(podUsage(running, PRICES.disk)?.rates, {
      gpu: 400_000_000,
      cpu: 0,
      disk: 10_000_000 + 100_000_000,
      fastDisk: 0,
    });
    assert.deepEqual(podUsage({ ...running, endedAt: 6_000 }, PRICES.disk)?.rates, {
      gpu: 0,
      cpu: 0,
      disk: 200_000_000,
      fastDisk: 0,
    });
    assert.equal(podUsage({ ...running, endedAt: 6_000, wanted: 'terminated' }, PRICES.disk), null);
    assert.equal(podUsage(pod({ startedAt: 5_000, endedAt: 6_000 }), PRICES.disk), null);
    assert.equal(
      podUsage({ ...running, wanted: 'terminated' }, PRICES.disk)?.isRunning,
      true,
      'until it has ended it runs',
    );
  });

  test('changes at the times of the engine, not when they were noticed', () => {
    assert.deepEqual(summarize(rules.pod(pod({}), pod({ startedAt: 5_000, updatedAt: 99_000 }))), [
      [5_000, true, 400_000_000, 10_000_000],
    ]);
    assert.deepEqual(summarize(rules.pod(running, { ...running, endedAt: 6_000, updatedAt: 99_000 })), [
      [6_000, false, 0, 200_000_000],
    ]);
    assert.deepEqual(summarize(rules.pod(pod({}), pod({ startedAt: 5_000, endedAt: 6_000 }))), [
      [5_000, true, 400_000_000, 10_000_000],
      [6_000, null, null, null],
    ]);
  });

  test('changes with its record, and not with prices alone', () => {
    assert.deepEqual(summarize(rules.pod(running, { ...running, volumeSize: 1_460, updatedAt: 8_000 })), [
      [8_000, true, 400_000_000, 210_000_000],
    ]);
    assert.deepEqual(rules.pod(running, { ...running, status: 'STARTING', statusDetail: 'x' }), []);
  });

  test('is charged to its cluster, if it is in one', () => {
    const { kind, resourceId, unitId } = podUsage({ ...running, clusterId: 'c' }, PRICES.disk) ?? {};
    assert.deepEqual([kind, resourceId, unitId], ['cluster', 'c', running.id]);
  });

  test('is recorded at price zero', () => {
    assert.deepEqual(podUsage({ ...running, costPerHour: 0 }, {})?.rates, {
      gpu: 0,
      cpu: 0,
      disk: 0,
      fastDisk: 0,
    });
  });
});

describe('the usage of a worker', () => {
  test('is its hardware at the price for serverless, and its disk', () => {
    assert.deepEqual(workerUsage(worker, PRICES).rates, {
      gpu: 1_200_000_000,
      cpu: 0,
      disk: 10_000_000,
      fastDisk: 0,
    });
    assert.deepEqual(
      workerUsage({ ...worker, gpuTypeId: null, gpuCount: 0, cpuFlavorId: 'cpu3c', vcpuCount: 4 }, PRICES)
        .rates,
      { gpu: 0, cpu: 160_000_000, disk: 10_000_000, fastDisk: 0 },
    );
  });

  test('begins and ends with its instance', () => {
    assert.deepEqual(rules.workerChanges(undefined, { ...worker, startedAt: null }), []);
    assert.deepEqual(
      summarize(rules.workerChanges({ ...worker, startedAt: null }, worker)).map(([at]) => at),
      [1_000],
    );
    assert.deepEqual(
      summarize(rules.workerChanges(worker, { ...worker, endedAt: 9_000 })).map(([at, runs]) => [at, runs]),
      [[9_000, null]],
    );
    assert.deepEqual(
      summarize(rules.workerChanges({ ...worker, startedAt: null }, { ...worker, endedAt: 9_000 })).map(
        ([at]) => at,
      ),
      [1_000, 9_000],
    );
  });

  test('does not begin again with a late write', () => {
    assert.deepEqual(rules.workerChanges({ ...worker, endedAt: 9_000 }, worker), []);
    assert.deepEqual(rules.workerChanges(worker, { ...worker, startedAt: null }), []);
    assert.deepEqual(
      summarize(rules.workerChanges({ ...worker, endedAt: 9_000 }, { ...worker, startedAt: 20_000 })).map(
        ([at]) => at,
      ),
      [20_000],
      'under its old id it may start again',
    );
  });
});

test('a network volume costs what its size and tier cost, and less for each GB above 1 TB', () => {
  const volume = {
    id: 'v',
    accountId: 'a',
    name: 'v',
    size: 730,
    dataCenterId: 'D',
    type: 'STANDARD' as const,
    createdAt: 1,
  };
  assert.deepEqual(volumeUsage(volume, PRICES.disk).rates, { gpu: 0, cpu: 0, disk: 70_000_000, fastDisk: 0 });
  assert.deepEqual(volumeUsage({ ...volume, type: 'HIGH_PERFORMANCE' }, PRICES.disk).rates, {
    gpu: 0,
    cpu: 0,
    disk: 0,
    fastDisk: 140_000_000,
  });
  assert.equal(
    volumeUsage({ ...volume, size: 1_730 }, PRICES.disk).rates.disk,
    Math.round(((1_000 * 0.07 + 730 * 0.05) / 730) * 1e9),
  );
  assert.equal(
    volumeUsage({ ...volume, size: 1_730 }, { networkVolume: 0.07 }).rates.disk,
    Math.round(((1_730 * 0.07) / 730) * 1e9),
  );
});
