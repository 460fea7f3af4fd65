import type { Endpoint } from '../records.ts';
import { findGpuPool } from './gpu-pools.ts';
import { findGpuType } from './gpu-types.ts';
import type { GpuType } from './gpu-types.ts';
import type { CatalogSnapshot } from './catalog-snapshot.ts';
import { unknownValueMessage } from './catalog-snapshot.ts';

/**
 * Which GPUs an endpoint may use. It has three written forms, and each can be shown for what
 * was said in another: a list of types in order of preference (REST v1), pools without some
 * of their types (REST v2), and both as one comma-separated text in which a minus excludes a
 * type (GraphQL). With nothing in it, any GPU will do.
 */
export type GpuSelection = Pick<Endpoint, 'gpuTypeIds' | 'gpuPools' | 'excludedGpuTypes'>;

export const ANY_GPU: GpuSelection = { gpuTypeIds: [], gpuPools: [], excludedGpuTypes: [] };

export function isAnyGpu({ gpuTypeIds, gpuPools }: GpuSelection): boolean {
  return gpuTypeIds.length === 0 && gpuPools.length === 0;
}

/** The types that it comes down to, the most wanted first. Empty is any. */
export function eligibleGpuTypes({ gpuTypeIds, gpuPools, excludedGpuTypes }: GpuSelection): string[] {
  const pooled = gpuPools
    .flatMap((id) => findGpuPool(id)?.gpuTypeIds ?? [])
    .filter((id) => !excludedGpuTypes.includes(id));
  return unique([...gpuTypeIds, ...pooled]);
}

/** Those of the given types that it names, itself or in a pool. */
export function eligibleAmong(selection: GpuSelection, gpuTypeIds: readonly string[]): string[] {
  return eligibleGpuTypes(selection).filter((id) => gpuTypeIds.includes(id));
}

export interface PoolView {
  pools: string[];
  excludedTypes: string[];
  /** Types that belong to no pool. Each stands for a pool of its own. */
  unpooledTypes: string[];
}

/** The same types, said as pools. */
export function poolView(selection: GpuSelection): PoolView {
  const { gpuTypeIds, gpuPools, excludedGpuTypes } = selection;
  if (gpuTypeIds.length === 0) return { pools: gpuPools, excludedTypes: excludedGpuTypes, unpooledTypes: [] };
  const eligible = eligibleGpuTypes(selection);
  const pools = unique([...gpuTypeIds.map(poolOf).filter((id) => id !== null), ...gpuPools]);
  return {
    pools,
    excludedTypes: pools
      .flatMap((id) => findGpuPool(id)?.gpuTypeIds ?? [])
      .filter((id) => !eligible.includes(id)),
    unpooledTypes: gpuTypeIds.filter((id) => poolOf(id) === null),
  };
}

/** `ADA_24,AMPERE_48,-NVIDIA A40` */
export function formatGpuIds(selection: GpuSelection): string {
  const { pools, excludedTypes, unpooledTypes } = poolView(selection);
  return [...pools, ...unpooledTypes, ...excludedTypes.map((id) => `-${id}`)].join(',');
}

export function parseGpuIds(gpuIds: string): GpuSelection {
  const items = gpuIds
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
  const wanted = items.filter((item) => !item.startsWith('-'));
  return {
    gpuPools: wanted.filter((item) => findGpuPool(item) !== undefined),
    gpuTypeIds: wanted.filter((item) => findGpuPool(item) === undefined),
    excludedGpuTypes: items.filter((item) => item.startsWith('-')).map((item) => item.slice(1).trim()),
  };
}

/**
 * The selection without exclusions that a list of pools means. What is written as no pool is, and is in none,
 * is a type that stands for itself.
 */
export function parsePools(pools: readonly string[]): GpuSelection {
  const isPool = (id: string): boolean => /^[A-Z0-9_]+$/.test(id.trim()) || poolOf(id) !== null;
  return {
    gpuPools: pools.filter(isPool),
    gpuTypeIds: pools.filter((id) => !isPool(id)),
    excludedGpuTypes: [],
  };
}

/** Each type under the id that the catalog gives it, and nothing twice. */
export function normalizeGpuIds({ gpuTypeIds, gpuPools, excludedGpuTypes }: GpuSelection): GpuSelection {
  const spelled = (ids: readonly string[]): string[] =>
    unique(ids.map((id) => findGpuType(id)?.id ?? id.trim()));
  return {
    gpuTypeIds: spelled(gpuTypeIds),
    gpuPools: unique(gpuPools.map((id) => id.trim())),
    excludedGpuTypes: spelled(excludedGpuTypes),
  };
}

export function gpuFindings(selection: GpuSelection, offer: CatalogSnapshot): string[] {
  const { gpuTypeIds, gpuPools, excludedGpuTypes } = selection;
  const poolIds = offer.gpuPools.map(({ id }) => id);
  const types =
    offer.connectedGpuTypes.length > 0 ? offer.connectedGpuTypes : offer.gpuTypes.map(({ id }) => id);
  const findings = [
    ...gpuPools
      .filter((id) => !poolIds.includes(id))
      .map((id) => unknownValueMessage('GPU pool', id, poolIds)),
    ...gpuTypeIds
      .filter((id) => offeredType(id, offer) === undefined)
      .map((id) => unknownValueMessage('GPU type', id, types)),
  ];
  if (findings.length > 0) return findings;
  const inside = gpuPools.flatMap((id) => findGpuPool(id)?.gpuTypeIds ?? []);
  const outside = excludedGpuTypes.filter((id) => !inside.includes(id));
  if (outside.length > 0)
    return outside.map(
      (id) =>
        `excluded GPU type ${JSON.stringify(id.slice(0, 64))} is in none of the pools ` +
        `${gpuPools.join(', ') || '(there are none)'}; their types: ${inside.join(', ') || 'none'}`,
    );
  if (!isAnyGpu(selection) && eligibleGpuTypes(selection).length === 0)
    return ['the excluded GPU types leave none of the pools; exclude fewer, or add a pool'];
  return [];
}

function offeredType(id: string, { gpuTypes }: CatalogSnapshot): GpuType | undefined {
  return findGpuType(id) ?? gpuTypes.find((type) => type.id === id);
}

function poolOf(gpuTypeId: string): string | null {
  return findGpuType(gpuTypeId)?.pool ?? null;
}

function unique(items: readonly string[]): string[] {
  return [...new Set(items)];
}
