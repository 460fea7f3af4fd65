import { bucketsBetween } from '../../cloud/src/domain/time-buckets.ts';
import type { Bucket, BucketSize } from '../../cloud/src/domain/time-buckets.ts';
import {
  COST_PARTS,
  type CostPart,
  type ResourceUsage,
  type UsageChange,
} from '../../cloud/src/domain/usage-records.ts';

const GPU_TYPES = ['NVIDIA A40', 'NVIDIA L4', 'NVIDIA H100 PCIe', null];
const DAY_MS = 86_400_000;
export const SIMULATED_YEAR = { start: Date.UTC(2025, 0), end: Date.UTC(2026, 0) };

/** What one pod did in a year: what it used from which instant on, in order. */
export interface PodUsageYear {
  id: string;
  changes: UsageChange[];
}

/**
 * Pods that start, stop, grow, change their price and end, at any millisecond of a year. Some continue beyond
 * it.
 */
export function simulateUsageYear(pods: number, random: () => number, accountId: string): PodUsageYear[] {
  return Array.from({ length: pods }, (_, index) => {
    const pod = onePod(`pod${index}`, random, accountId);
    return index === 0 ? runAllYear(pod) : pod;
  });
}

/** One pod does, so that no part of the year is without usage, whatever the seed. */
function runAllYear({ id, changes }: PodUsageYear): PodUsageYear {
  return { id, changes: changes.slice(0, 1).map((change) => ({ ...change, at: SIMULATED_YEAR.start })) };
}

function onePod(id: string, random: () => number, accountId: string): PodUsageYear {
  const gpuTypeId = GPU_TYPES[Math.floor(random() * GPU_TYPES.length)] ?? null;
  const between = (low: number, high: number): number => Math.floor(low + random() * (high - low));
  const hourly = between(0, 4) * 250_000_000 + between(0, 1_000);
  const volume = random() < 0.5 ? between(10, 200) : 0;
  const use = (runs: boolean, factor: number): ResourceUsage => ({
    unitId: id,
    accountId,
    kind: 'pod',
    resourceId: id,
    gpuTypeId,
    cpuFlavorId: gpuTypeId === null ? 'cpu3c' : null,
    tier: null,
    dataCenterId: 'LOCAL-1',
    image: 'i',
    templateId: null,
    rates: {
      gpu: runs && gpuTypeId !== null ? hourly * factor : 0,
      cpu: runs && gpuTypeId === null ? hourly * factor : 0,
      disk: (volume + (runs ? 50 : 0)) * 137_000,
      fastDisk: 0,
    },
    diskInGb: volume * factor + (runs ? 50 : 0),
    isRunning: runs,
  });
  const changes: UsageChange[] = [];
  // Now and then at the very edge of a day, where mistakes live.
  const step = (longest: number): number => (random() < 0.1 ? DAY_MS : between(1, longest));
  let at = SIMULATED_YEAR.start + (random() < 0.1 ? 0 : between(0, 300 * DAY_MS));
  for (let runs = between(1, 8); runs > 0 && at < SIMULATED_YEAR.end; runs -= 1) {
    changes.push({ unitId: id, usage: use(true, 1), at });
    at += step(20 * DAY_MS);
    if (random() < 0.3 && at < SIMULATED_YEAR.end) {
      changes.push({ unitId: id, usage: use(true, 2), at });
      at += step(5 * DAY_MS);
    }
    if (at >= SIMULATED_YEAR.end || random() < 0.02) break;
    changes.push({ unitId: id, usage: volume > 0 ? use(false, 1) : null, at });
    at += step(20 * DAY_MS);
  }
  if (at < SIMULATED_YEAR.end && random() < 0.8) changes.push({ unitId: id, usage: null, at });
  return { id, changes };
}

export interface UsageTotals {
  amounts: Record<CostPart, bigint>;
  seconds: number;
}

/**
 * The same year counted again, from what happened and nothing else. Time is in whole seconds, the
 * nearest but at least one, from the second nearest to where a pod began to use something without a break.
 */
export function recountUsage(
  pods: readonly PodUsageYear[],
  size: BucketSize,
  groupOf: (use: ResourceUsage) => string,
  now = SIMULATED_YEAR.end,
): Map<string, UsageTotals> {
  const buckets = bucketsBetween(size, SIMULATED_YEAR.start / 1000, SIMULATED_YEAR.end / 1000);
  const counted = new Map<string, UsageTotals>();
  for (const { changes } of pods) {
    let origin: number | undefined;
    changes.forEach(({ usage, at }, index) => {
      if (usage === null) return void (origin = undefined);
      origin ??= at;
      const from = origin;
      const second = (instant: number): number =>
        Math.round(from / 1000) + (instant === from ? 0 : Math.max(1, Math.round((instant - from) / 1000)));
      const next = changes[index + 1];
      const began = second(at);
      const ended = next === undefined ? Math.floor(now / 1000) : second(next.at);
      for (const bucket of buckets)
        count(
          counted,
          bucket,
          usage,
          Math.max(began, bucket.start),
          Math.min(ended, bucket.end),
          groupOf(usage),
        );
    });
  }
  return counted;
}

function count(
  counted: Map<string, UsageTotals>,
  { start }: Bucket,
  use: ResourceUsage,
  from: number,
  to: number,
  group: string,
): void {
  if (to <= from) return;
  const key = `${start} ${group}`;
  const entry = counted.get(key) ?? { amounts: { gpu: 0n, cpu: 0n, disk: 0n, fastDisk: 0n }, seconds: 0 };
  for (const part of COST_PARTS) entry.amounts[part] += BigInt(use.rates[part]) * BigInt(to - from);
  if (use.isRunning) entry.seconds += to - from;
  counted.set(key, entry);
}
