import type { ApiClient } from '../api-client.ts';
import { CliError } from '../cli.errors.ts';
import { noSuch } from '../find-by-id-or-name.ts';
import type { GpuChoice } from './endpoint-client.ts';

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
    throw noSuchGpu('GPU type or pool', word, types, [...pools]);
  });
  const chosen = [...new Set(wanted.map(({ id, pool }) => pool ?? id))];
  const excludedTypes = types
    .filter((type) => type.pool !== null && chosen.includes(type.pool) && !wanted.includes(type))
    .map(({ id }) => id);
  return { pools: chosen, ...(excludedTypes.length > 0 && { excludedTypes }) };
}

/** Many write H100, or rtx4090: the types with that in their names are shown. */
export function noSuchGpu(
  what: string,
  word: string,
  types: readonly Pick<GpuType, 'id' | 'name'>[],
  pools: readonly string[] = [],
): CliError {
  const isAlike = (text: string): boolean => plain(word) !== '' && plain(text).includes(plain(word));
  const alike = [
    ...types.filter(({ id, name }) => isAlike(id) || isAlike(name)).map(({ id }) => id),
    ...pools.filter(isAlike),
  ];
  if (alike.length === 0) {
    const names = [...types.flatMap(({ id, name }) => [id, name]), ...pools];
    return noSuch(what, word, names, '"berth gpu ls" lists them');
  }
  const quoted = alike.map((name) => JSON.stringify(name)).join(' or ');
  return new CliError(`there is no ${what} ${JSON.stringify(word)}; did you mean ${quoted}?`);
}

function plain(text: string): string {
  return text.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
}

/** What a worker with these GPUs waits for, where none of them is free now. */
export async function gpuShortage(
  client: ApiClient,
  { pools, excludedTypes }: GpuChoice,
): Promise<string | undefined> {
  const { rows } = await client.list<GpuType & { availability?: string; virtual?: boolean }>(
    '/v2/catalog/gpus?include=AVAILABILITY&product=POD',
    'gpus',
  );
  const free = rows.filter(({ availability }) => availability !== 'NONE');
  if (
    free.some(
      ({ id, pool }) =>
        (pools.includes(id) || pools.includes(pool ?? '')) && excludedTypes?.includes(id) !== true,
    )
  )
    return undefined;
  const there = free.map(({ id, virtual }) => (virtual === true ? `${id} (virtual)` : id)).join(', ');
  return (
    'no worker can start now: none of the GPUs asked for is free here; ' +
    (there === ''
      ? 'no GPU is (the setting gpus: virtual adds virtual ones to try things with)'
      : `free: ${there}`)
  );
}
