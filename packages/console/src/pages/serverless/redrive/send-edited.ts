import { api } from '../../../api/client.ts';
import type { JobPage } from '../../../api/types.ts';

export interface BulkResult {
  done: number;
  skipped: { id: string; reason: string }[];
  nextCursor: string | null;
}

/** Which jobs are sent again: some, or all that match. */
export type RedriveTarget = { ids: string[] } | { filter: Record<string, unknown> };

/** How their inputs are edited. */
export type InputEdit = { patch: Record<string, unknown> } | { input: unknown };

export interface SendProgress {
  done: number;
  skipped: BulkResult['skipped'];
}

const PAGE = 100;
/** The same input is sent for each job: so large is one request at most. */
const MAX_REQUEST_LENGTH = 2_000_000;

/** Sends jobs again until there are no more. Stops between two requests when it is aborted. */
export async function sendEdited(
  endpointId: string,
  target: RedriveTarget,
  edit: InputEdit,
  signal: AbortSignal,
  onProgress: (progress: SendProgress) => void,
): Promise<SendProgress> {
  const progress: SendProgress = { done: 0, skipped: [] };
  const redrive = async (body: object): Promise<string | undefined> => {
    const result = await api<BulkResult>(`/v2/serverless/${endpointId}/jobs/redrive`, {
      method: 'POST',
      body,
    });
    progress.done += result.done;
    progress.skipped.push(...result.skipped);
    onProgress({ ...progress });
    return result.nextCursor ?? undefined;
  };
  if ('patch' in edit) {
    let cursor: string | undefined;
    do {
      cursor = await redrive({ ...target, inputPatch: edit.patch, ...(cursor !== undefined && { cursor }) });
    } while (cursor !== undefined && !signal.aborted);
    return progress;
  }
  const perRequest = Math.max(
    1,
    Math.min(PAGE, Math.floor(MAX_REQUEST_LENGTH / JSON.stringify(edit.input).length)),
  );
  for await (const ids of pagesOfIds(endpointId, target))
    for (let from = 0; from < ids.length && !signal.aborted; from += perRequest)
      await redrive({
        inputs: ids.slice(from, from + perRequest).map((id) => ({ id, input: edit.input })),
      });
  return progress;
}

async function* pagesOfIds(endpointId: string, target: RedriveTarget): AsyncGenerator<string[]> {
  if ('ids' in target) return yield target.ids;
  let cursor: string | undefined;
  do {
    const page = await readMatching(endpointId, target.filter, PAGE, cursor);
    yield page.jobs.map(({ id }) => id);
    cursor = page.pagination.nextCursor ?? undefined;
  } while (cursor !== undefined);
}

export function readMatching(
  endpointId: string,
  filter: Record<string, unknown>,
  limit: number,
  cursor?: string,
): Promise<JobPage> {
  const query = Object.fromEntries(
    Object.entries({ status: ['FAILED', 'TIMED_OUT'], ...filter }).map(([name, value]) => [
      name,
      String(value),
    ]),
  );
  return api<JobPage>(`/v2/serverless/${endpointId}/jobs`, { query: { ...query, limit, cursor } });
}
