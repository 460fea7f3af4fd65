import type { PriceSettings } from '../resources/catalog/prices.ts';
import { workerHourlyCost } from '../resources/pods/cost.ts';
import type { Worker } from '../store/fleet.ts';
import type { CostPart, UsageRules, Use, UseChange } from '../store/ledger.ts';
import type { Pod } from '../store/pods.ts';
import type { NetworkVolume } from '../store/records.ts';
import type { Prices } from '../support/config/prices.ts';
import { hourlyRate, monthlyRate } from './money.ts';

/** What disks cost, in US dollars for a GB and month. What is not named costs nothing. */
export type DiskPrices = Prices['disk'];
export type UsagePrices = PriceSettings & { disk: DiskPrices };

/** Above this, a standard network volume may cost less for each GB. */
const LARGE_VOLUME_GB = 1000;

/** What is used follows from the records alone, and so it is known whoever was running when. */
export function usageRules(prices: UsagePrices): UsageRules {
  return {
    podUse: (pod) => podUse(pod, prices.disk),
    pod: (before, after) => podChanges(before, after, prices.disk),
    worker: (before, after) => workerChanges(before, after, prices),
    workerUse: (worker) => workerUse(worker, prices),
    volume: (volume, at) => [{ unitId: volume.id, use: volumeUse(volume, prices.disk), at }],
  };
}

/** A pod pays for its hardware and its disks while it runs, and for its volume disk while it is stopped. */
export function podUse(pod: Pod, prices: DiskPrices): Use | null {
  const {
    id,
    accountId,
    gpuTypeId,
    cpuFlavorId,
    dataCenterId,
    image,
    templateId,
    containerDisk,
    volumeSize,
    costPerHour,
    clusterId,
  } = pod;
  const runs = isRun(pod);
  if (!runs && (pod.startedAt === null || pod.wanted === 'terminated' || volumeSize === 0)) return null;
  const compute = runs ? hourlyRate(costPerHour) : 0;
  const disk = runs
    ? containerDisk * (prices.container ?? 0) + volumeSize * (prices.volume ?? 0)
    : volumeSize * (prices.stoppedVolume ?? 0);
  return {
    unitId: id,
    accountId,
    ...(clusterId !== null ? { kind: 'cluster', resourceId: clusterId } : { kind: 'pod', resourceId: id }),
    gpuTypeId,
    cpuFlavorId,
    tier: null,
    dataCenterId,
    image,
    templateId,
    rates: rates({ [gpuTypeId === null ? 'cpu' : 'gpu']: compute, disk: monthlyRate(disk) }),
    diskInGb: volumeSize + (runs ? containerDisk : 0),
    runs,
  };
}

function podChanges(before: Pod, after: Pod, prices: DiskPrices): UseChange[] {
  const unitId = after.id;
  const use = podUse(after, prices);
  const isOtherRun = before.startedAt !== after.startedAt;
  // Prices that differ from those of the open stretch are for the repricing: here only what is written counts.
  if (!isOtherRun && isRun(before) === isRun(after))
    return isEqual(podUse(before, prices), use) ? [] : [{ unitId, use, at: after.updatedAt }];
  if (isRun(after)) return [{ unitId, use, at: after.startedAt ?? after.updatedAt }];
  const end: UseChange = { unitId, use, at: after.endedAt ?? after.updatedAt };
  // A whole run that is written down at once.
  return isOtherRun && after.startedAt !== null
    ? [{ unitId, use: podUse({ ...after, endedAt: null }, prices), at: after.startedAt }, end]
    : [end];
}

function isEqual(one: Use | null, other: Use | null): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function isRun({ startedAt, endedAt }: Pick<Pod, 'startedAt' | 'endedAt'>): boolean {
  return startedAt !== null && endedAt === null;
}

/** A worker pays from the start of its instance to its end, whether it works or waits. */
export function workerUse(worker: Worker, prices: UsagePrices): Use {
  const {
    id,
    accountId,
    endpointId,
    gpuTypeId,
    cpuFlavorId,
    containerDisk,
    dataCenterId,
    image,
    templateId,
  } = worker;
  return {
    unitId: id,
    accountId,
    kind: 'serverless',
    resourceId: endpointId,
    gpuTypeId,
    cpuFlavorId,
    tier: null,
    dataCenterId,
    image,
    templateId,
    rates: rates({
      [gpuTypeId === null ? 'cpu' : 'gpu']: hourlyRate(workerHourlyCost(prices, worker)),
      disk: monthlyRate(containerDisk * (prices.disk.container ?? 0)),
    }),
    diskInGb: containerDisk,
    runs: true,
  };
}

/** What is written late, after what came later, tells nothing new. */
function workerChanges(before: Worker | undefined, after: Worker, prices: UsagePrices): UseChange[] {
  const { id: unitId, startedAt, endedAt } = after;
  const isKnown = before !== undefined && before.startedAt === startedAt;
  if (startedAt === null || (isKnown && before.endedAt !== null)) return [];
  const begin: UseChange[] = isKnown ? [] : [{ unitId, use: workerUse(after, prices), at: startedAt }];
  return endedAt === null ? begin : [...begin, { unitId, use: null, at: Math.max(startedAt, endedAt) }];
}

/** A network volume pays as long as it is there, used or not. */
export function volumeUse(
  { id, accountId, size, type, dataCenterId }: NetworkVolume,
  prices: DiskPrices,
): Use {
  const standard = prices.networkVolume ?? 0;
  const above = Math.max(0, size - LARGE_VOLUME_GB);
  const cost =
    type === 'HIGH_PERFORMANCE'
      ? size * (prices.highPerformanceVolume ?? 0)
      : (size - above) * standard + above * (prices.networkVolumeAbove1TB ?? standard);
  return {
    unitId: id,
    accountId,
    kind: 'volume',
    resourceId: id,
    gpuTypeId: null,
    cpuFlavorId: null,
    tier: type,
    dataCenterId,
    image: null,
    templateId: null,
    rates: rates({ [type === 'HIGH_PERFORMANCE' ? 'fastDisk' : 'disk']: monthlyRate(cost) }),
    diskInGb: size,
    runs: false,
  };
}

function rates(given: Partial<Record<CostPart, number>>): Record<CostPart, number> {
  return { gpu: 0, cpu: 0, disk: 0, fastDisk: 0, ...given };
}
