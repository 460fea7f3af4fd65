import { ApiError } from '../api-client.ts';
import type { ApiClient } from '../api-client.ts';
import { requireByIdOrName } from '../find-by-id-or-name.ts';

export interface PodToCopy {
  id: string;
  name: string;
}

/** Finds a pod by id or by a unique name. */
export async function findPodToCopy(client: ApiClient, word: string): Promise<PodToCopy> {
  try {
    return await client.get<PodToCopy>(`/v2/pods/${encodeURIComponent(word)}`);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
  }
  const all = await client.listAll<PodToCopy>('/v2/pods', 'pods');
  return requireByIdOrName(all, word, { noun: 'pod', listCommand: 'berth pod ls' });
}
