import type { GpuType } from '../../../api/resources.ts';

/** The GPUs that workers of an endpoint may have: whole pools, without some of their types. */
export interface GpuSelection {
  pools: readonly string[];
  excludedTypes: readonly string[];
}

type PooledType = Pick<GpuType, 'id' | 'pool'>;

/** A type that belongs to no pool stands for one of its own. */
export function poolOf({ id, pool }: PooledType): string {
  return pool ?? id;
}

export function isSelected({ pools, excludedTypes }: GpuSelection, type: PooledType): boolean {
  return pools.includes(poolOf(type)) && !excludedTypes.includes(type.id);
}

/** The selection with one type more or less. A pool of which no type is left is not selected. */
export function toggleType(
  selection: GpuSelection,
  type: PooledType,
  all: readonly PooledType[],
): GpuSelection {
  const pool = poolOf(type);
  const ofPool = all.filter((each) => poolOf(each) === pool);
  const selected = ofPool.filter((each) =>
    each.id === type.id ? !isSelected(selection, type) : isSelected(selection, each),
  );
  const otherExclusions = selection.excludedTypes.filter((id) => !ofPool.some((each) => each.id === id));
  if (selected.length === 0)
    return { pools: selection.pools.filter((each) => each !== pool), excludedTypes: otherExclusions };
  return {
    pools: selection.pools.includes(pool) ? selection.pools : [...selection.pools, pool],
    excludedTypes: [
      ...otherExclusions,
      ...ofPool.filter((each) => !selected.includes(each)).map(({ id }) => id),
    ],
  };
}
