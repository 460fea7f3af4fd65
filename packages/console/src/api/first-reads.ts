import type { QueryClient } from '@tanstack/react-query';
import { readOf } from './queries.ts';

/**
 * Reads what the first page shows before anything is drawn. The server has told the browser to ask for it together
 * with the scripts (`Link` header), so mostly it is there already.
 */
export async function firstReads(client: QueryClient, page: string): Promise<void> {
  if (page === '/login') return;
  const paths = ['/v2/session', ...(page === '/' ? ['/v2/account/overview'] : [])];
  await Promise.all(paths.map((path) => client.prefetchQuery(readOf(path))));
}
