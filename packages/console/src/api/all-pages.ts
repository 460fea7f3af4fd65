import { useQuery } from '@tanstack/react-query';
import type { UseQueryResult } from '@tanstack/react-query';
import { api } from './client.ts';
import type { RequestOptions } from './client.ts';

type ListPage<T> = { pagination?: { nextCursor: string | null } } & Record<string, T[]>;

/** A whole list of the API, however many pages it has. */
export function useAllPages<T>(
  path: string,
  field: string,
  { query = {}, everyMs }: { query?: RequestOptions['query']; everyMs?: number } = {},
): UseQueryResult<T[], Error> {
  return useQuery<T[], Error>({
    queryKey: [path, { ...query, all: true }],
    queryFn: ({ signal }) => readAllPages<T>(path, field, query, signal),
    ...(everyMs !== undefined && { refetchInterval: everyMs }),
  });
}

async function readAllPages<T>(
  path: string,
  field: string,
  query: RequestOptions['query'],
  signal: AbortSignal,
): Promise<T[]> {
  const rows: T[] = [];
  let cursor: string | undefined;
  do {
    const page: ListPage<T> = await api(path, { query: { ...query, cursor }, signal });
    rows.push(...(page[field] ?? []));
    cursor = page.pagination?.nextCursor ?? undefined;
  } while (cursor !== undefined);
  return rows;
}
