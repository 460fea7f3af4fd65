import { noSuch } from '../find-by-id-or-name.ts';
import type { ApiClient } from '../api-client.ts';
import type { GpuChoice } from './deploy-options.ts';

interface GpuType {
  id: string;
  name: string;
  pool: string | null;
}

/** Converts GPUs from the command line to an endpoint's fields: pools, and the types excluded from them. */
export async function fetchGpuChoice(client: ApiClient, words: readonly string[]): Promise<GpuChoice> {
  const { rows } = await client.list<GpuType>('/v2/catalog/gpus', 'gpus');
  return resolveGpuChoice(rows, words);
}

export function resolveGpuChoice(types: readonly GpuType[], words: readonly string[]): GpuChoice {
  const pools = new Set(types.flatMap(({ pool }) => pool ?? []));
  const wanted = words.flatMap((word) => {
    const same = (text: string): boolean => text.toLowerCase() === word.toLowerCase();
    const pool = [...pools].find(same);
    if (pool !== undefined) return types.filter((type) => type.pool === pool);
    const type = types.find(({ id, name }) => same(id) || same(name));
    if (type !== undefined) return [type];
    const names = [...types.flatMap(({ id, name }) => [id, name]), ...pools];
    throw noSuch('GPU type or pool', word, names, 'GET /v2/catalog/gpus lists them');
  });
  const chosen = [...new Set(wanted.map(({ id, pool }) => pool ?? id))];
  const excludedTypes = types
    .filter((type) => type.pool !== null && chosen.includes(type.pool) && !wanted.includes(type))
    .map(({ id }) => id);
  return { pools: chosen, ...(excludedTypes.length > 0 && { excludedTypes }) };
}
