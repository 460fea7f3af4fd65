import type { KubernetesClient, Query, RequestOptions } from './kubernetes-client.ts';

/** Objects of one answer: thousands at once would be large texts, here and in the API server. */
const PAGE = 250;

interface ObjectPage<T> {
  metadata: { resourceVersion: string; continue?: string };
  items: T[];
}

/** All objects of a list, and its version. `select` takes what is needed of each. */
export async function listObjects<T>(
  client: Pick<KubernetesClient, 'get'>,
  path: string,
  query: Query,
  select: (object: T) => T,
  options: RequestOptions = {},
): Promise<{ objects: T[]; resourceVersion: string }> {
  const objects: T[] = [];
  for (let next: string | undefined; ; ) {
    const page = await client.get<ObjectPage<T>>(path, { ...query, limit: PAGE, continue: next }, options);
    for (const item of page.items) objects.push(select(item));
    next = page.metadata.continue || undefined;
    if (next === undefined) return { objects, resourceVersion: page.metadata.resourceVersion };
  }
}
