import { keepPreviousData, QueryClient, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { UseMutationResult, UseQueryResult } from '@tanstack/react-query';
import { ApiError, api } from './client.ts';
import type { RequestOptions } from './client.ts';

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 2_000,
      // A refused request is not retried; a lost connection is.
      retry: (failures, error) => !(error instanceof ApiError && error.status < 500) && failures < 60,
      retryDelay: (attempt) => Math.min(500 * 2 ** attempt, 5_000),
      networkMode: 'always',
    },
    mutations: { networkMode: 'always' },
  },
});

export interface ReadOptions {
  query?: RequestOptions['query'];
  /** False: not now. */
  enabled?: boolean;
  /** Asked again this often, in addition to what events say. */
  everyMs?: number | undefined;
  /** Shows what the last address answered until this one has answered. */
  keepPrevious?: boolean;
}

/** Reads an address of the API. Its key begins with the path, so events can say which paths have changed. */
export function useApi<T>(path: string, options: ReadOptions = {}): UseQueryResult<T, Error> {
  const { query, enabled = true, everyMs, keepPrevious } = options;
  return useQuery<T, Error>({
    ...readOf<T>(path, query),
    enabled,
    ...(everyMs !== undefined && { refetchInterval: everyMs }),
    ...(keepPrevious === true && { placeholderData: keepPreviousData }),
  });
}

/** A query: its key begins with the path. */
export function readOf<T>(
  path: string,
  query?: RequestOptions['query'],
): { queryKey: [string, object]; queryFn: (context: { signal: AbortSignal }) => Promise<T> } {
  return {
    queryKey: [path, query ?? {}],
    queryFn: ({ signal }) => api<T>(path, { ...(query !== undefined && { query }), signal }),
  };
}

export interface WriteRequest extends RequestOptions {
  path: string;
}

/** Writes, then reads again everything below the given paths. */
export function useWrite<T = unknown>(...changed: string[]): UseMutationResult<T, Error, WriteRequest> {
  const client = useQueryClient();
  return useMutation<T, Error, WriteRequest>({
    mutationFn: ({ path, ...options }) => api<T>(path, { method: 'POST', ...options }),
    onSuccess: () => refresh(client, changed),
  });
}

/** Reads again what is at or below one of the paths; with `=` before it, only what is exactly there. */
export async function refresh(client: QueryClient, paths: readonly string[]): Promise<void> {
  await client.invalidateQueries({
    predicate: ({ queryKey: [path] }) =>
      typeof path === 'string' &&
      paths.some((start) => path === start || `=${path}` === start || path.startsWith(`${start}/`)),
  });
}
