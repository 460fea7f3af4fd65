import type { VolumeType } from './records.ts';
import type { PackedSums } from './packed-sums.ts';
import type { Bucket } from './time-buckets.ts';

/** A pod that belongs to a cluster is paid for with the cluster. */
export const USAGE_KINDS = ['pod', 'serverless', 'volume', 'cluster'] as const;

export type UsageKind = (typeof USAGE_KINDS)[number];

export const COST_PARTS = ['gpu', 'cpu', 'disk', 'fastDisk'] as const;

/** What a price is asked for. `fastDisk` is the high-performance tier of network volumes. */
export type CostPart = (typeof COST_PARTS)[number];

export interface ResourceUsage {
  unitId: string;
  accountId: string;
  kind: UsageKind;
  /** What its owner knows it by: the pod, the endpoint, the volume, the cluster. */
  resourceId: string;
  gpuTypeId: string | null;
  cpuFlavorId: string | null;
  /** Of a network volume. */
  tier: VolumeType | null;
  dataCenterId: string;
  image: string | null;
  templateId: string | null;
  /** Nano-dollars an hour. */
  rates: Record<CostPart, number>;
  diskInGb: number;
  /** Its time counts: it runs, and does not only keep a disk. */
  isRunning: boolean;
}

/** From this instant on, in milliseconds, the unit uses this; null is nothing. */
export interface UsageChange {
  unitId: string;
  usage: ResourceUsage | null;
  at: number;
}

export interface UsageInterval extends ResourceUsage {
  /** Seconds since 1970. */
  beganAt: number;
  /** Null while it continues. */
  endedAt: number | null;
  /** Disk that was not held before. */
  addedInGb: number;
}

/** How usage is rolled up: together, by hardware or tier, by what its owner knows it by. */
export type RollupGrouping = 'all' | 'type' | 'resource';

export type RollupLevel = 'hour' | 'day' | 'month';

/** How hardware and tiers are named among the groups. */
export function hardwareGroup({
  gpuTypeId,
  cpuFlavorId,
  tier,
}: Pick<ResourceUsage, 'gpuTypeId' | 'cpuFlavorId' | 'tier'>): string {
  if (tier !== null) return tier;
  return gpuTypeId === null ? `cpu ${cpuFlavorId ?? ''}` : `gpu ${gpuTypeId}`;
}

export interface RollupQuery {
  accountId: string;
  kinds: readonly UsageKind[];
  grouping: RollupGrouping;
  /** By resource there are no hours. */
  level: RollupLevel;
  /** Seconds since 1970; the first is the start of a day for hours, else of a month. */
  from: number;
  to: number;
}

/**
 * What changed in some hours, days or months, for one group, by time: rows from one on up to, but
 * without, another. `late` says how much less it is than if all of it had changed at the start: rate
 * times seconds. With that, an interval costs the same to write and to read however long it lasts: it
 * is in the roll-ups where it begins and where it ends.
 */
export interface RollupSlice {
  group: string;
  rows: PackedSums;
  from: number;
  to: number;
}

/** What a group used at an instant. */
export interface UsageState {
  group: string;
  rates: Record<CostPart, number>;
  runs: number;
  diskInGb: number;
}

export interface UsageRollup {
  kind: UsageKind;
  /** What each group used when the first of the changes began. */
  before: UsageState[];
  /** Those of one group are by time. */
  changes: RollupSlice[];
}

export interface UsageIntervalQuery {
  accountId: string;
  kind: UsageKind;
  /** Seconds since 1970. */
  from: number;
  to: number;
  resourceId?: string;
  gpuTypeIds?: readonly string[];
  dataCenterIds?: readonly string[];
  image?: string;
  templateId?: string;
}

export interface CurrentRates {
  kind: UsageKind;
  rates: Record<CostPart, number>;
}

/** What one group used in one bucket. */
export interface UsageTotal extends Bucket {
  group: string;
  /** Rate times seconds. */
  amounts: Record<CostPart, bigint>;
  /** Of what ran. */
  seconds: number;
  /** Disk that was held when the bucket began, and what was added in it. */
  diskInGb: number;
}
