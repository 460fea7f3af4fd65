import { ApiError } from '../api-client.ts';
import type { ApiClient } from '../api-client.ts';
import { CliError } from '../cli.errors.ts';

export interface PodToCopy {
  id: string;
  name: string;
}

interface PodPage {
  pods: PodToCopy[];
  pagination?: { nextCursor: string | null };
}

/** Finds a pod by id or by a unique name. */
export async function findPodToCopy(client: ApiClient, word: string): Promise<PodToCopy> {
  try {
    return await client.get<PodToCopy>(`/v2/pods/${encodeURIComponent(word)}`);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
  }
  const named: PodToCopy[] = [];
  let cursor: string | null | undefined;
  do {
    const page: PodPage = await client.get<PodPage>(
      `/v2/pods${cursor === null || cursor === undefined ? '' : `?cursor=${encodeURIComponent(cursor)}`}`,
    );
    named.push(...page.pods.filter(({ name }) => name === word));
    cursor = page.pagination?.nextCursor;
  } while (cursor !== null && cursor !== undefined);
  if (named.length > 1)
    throw new CliError(
      `${named.length} pods are called ${JSON.stringify(word)}; name one by its id: ` +
        `${named.map(({ id }) => id).join(', ')}`,
    );
  const [only] = named;
  if (only === undefined) throw new CliError(`there is no pod ${JSON.stringify(word)}`);
  return only;
}
