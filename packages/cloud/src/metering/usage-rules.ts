import type { PriceSettings } from '../domain/catalog/prices.ts';
import { workerHourlyCost } from '../domain/hourly-cost.ts';
import type { UsageRules } from '../store/ledger-store.ts';
import type { NetworkVolume } from '../domain/records.ts';
import type { Prices } from '../support/config/prices.setting.ts';
import { hourlyRate, monthlyRate } from '../domain/money.ts';
import type { Pod } from '../domain/pods/pod-record.ts';
import type { Worker } from '../domain/endpoints/worker-record.ts';
import type { CostPart, ResourceUsage, UsageChange } from '../domain/usage-records.ts';

/** Disk prices in US dollars per GB and month. Missing ones are zero. */
export type DiskPrices = Prices['disk'];
export type UsagePrices = PriceSettings & { disk: DiskPrices };

/** Above this size, a standard network volume may cost less per GB. */
const LARGE_VOLUME_GB = 1000;

/** Usage follows from the stored records alone, so it does not depend on which server ran when. */
export function usageRules(prices: UsagePrices): UsageRules {
  return {
    podUsage: (pod) => podUsage(pod, prices.disk),
    pod: (before, after) => podChanges(before, after, prices.disk),
    workerChanges: (before, after) => workerChanges(before, after, prices),
    workerUsage: (worker) => workerUsage(worker, prices),
    volumeChanges: (volume, at) => [{ unitId: volume.id, usage: volumeUsage(volume, prices.disk), at }],
  };
}

/**
 * A pod is charged for its hardware and its disks while it runs, and for its volume disk while it is stopped.
 */
export function podUsage(pod: Pod, prices: DiskPrices): ResourceUsage | null {
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
  const runs = isPodRunning(pod);
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
    isRunning: runs,
  };
}

function podChanges(before: Pod, after: Pod, prices: DiskPrices): UsageChange[] {
  const unitId = after.id;
  const use = podUsage(after, prices);
  const isOtherRun = before.startedAt !== after.startedAt;
  // Other prices than those of the open interval are applied by the repricing. Here only changes of the
  // record count.
  if (!isOtherRun && isPodRunning(before) === isPodRunning(after))
    return isEqual(podUsage(before, prices), use) ? [] : [{ unitId, usage: use, at: after.updatedAt }];
  if (isPodRunning(after)) return [{ unitId, usage: use, at: after.startedAt ?? after.updatedAt }];
  const end: UsageChange = { unitId, usage: use, at: after.endedAt ?? after.updatedAt };
  // A whole run that is recorded at once.
  return isOtherRun && after.startedAt !== null
    ? [{ unitId, usage: podUsage({ ...after, endedAt: null }, prices), at: after.startedAt }, end]
    : [end];
}

function isEqual(one: ResourceUsage | null, other: ResourceUsage | null): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function isPodRunning({ startedAt, endedAt }: Pick<Pod, 'startedAt' | 'endedAt'>): boolean {
  return startedAt !== null && endedAt === null;
}

/** A worker is charged from the start of its instance to its end, busy or idle. */
export function workerUsage(worker: Worker, prices: UsagePrices): ResourceUsage {
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
    isRunning: true,
  };
}

/** A late write of an earlier state changes nothing. */
function workerChanges(before: Worker | undefined, after: Worker, prices: UsagePrices): UsageChange[] {
  const { id: unitId, startedAt, endedAt } = after;
  const isKnown = before !== undefined && before.startedAt === startedAt;
  if (startedAt === null || (isKnown && before.endedAt !== null)) return [];
  const begin: UsageChange[] = isKnown ? [] : [{ unitId, usage: workerUsage(after, prices), at: startedAt }];
  return endedAt === null ? begin : [...begin, { unitId, usage: null, at: Math.max(startedAt, endedAt) }];
}

/** A network volume is charged as long as it exists. */
export function volumeUsage(
  { id, accountId, size, type, dataCenterId }: NetworkVolume,
  prices: DiskPrices,
): ResourceUsage {
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
    isRunning: false,
  };
}

function rates(given: Partial<Record<CostPart, number>>): Record<CostPart, number> {
  return { gpu: 0, cpu: 0, disk: 0, fastDisk: 0, ...given };
}
