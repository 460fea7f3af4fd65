import { JOB_STATUSES } from '../../domain/job-records.ts';
import type { ApiClient } from '../api-client.ts';
import { UsageError } from '../cli.errors.ts';
import type { Options } from '../command-definition.ts';
import { endpointPath } from './endpoint-client.ts';
import type { EndpointView } from './endpoint-client.ts';

export interface JobEntry {
  id: string;
  status: string;
  createdAt: string;
  delayTime: number | null;
  executionTime: number | null;
  error: string | null;
  inputPreview: string | null;
}
interface JobPage {
  jobs: JobEntry[];
  pagination: { nextCursor: string | null };
}
/** Which jobs are meant; the same for the list and for actions. */
export const filterOptions = {
  status: { kind: 'list', choices: JOB_STATUSES, description: 'Only jobs in this state. May be repeated.' },
  from: { kind: 'text', value: 'TIME', description: 'Only jobs created at or after this time (ISO 8601).' },
  to: { kind: 'text', value: 'TIME', description: 'Only jobs created before this time.' },
  text: { kind: 'text', value: 'TEXT', description: 'Only jobs whose request contains this text.' },
  fingerprint: {
    kind: 'text',
    value: 'ID',
    description: 'Only jobs with this error; "berth job errors" shows the fingerprints.',
  },
} as const satisfies Options;
export type FilterValues = {
  status: string[];
  from: string | undefined;
  to: string | undefined;
  text: string | undefined;
  fingerprint: string | undefined;
};

export function filterFields({ status, from, to, text, fingerprint }: FilterValues): Record<string, unknown> {
  const time = (value: string | undefined): string | undefined => {
    if (value === undefined) return undefined;
    if (Number.isNaN(Date.parse(value)))
      throw new UsageError(`${JSON.stringify(value)} is not a time such as 2026-01-31T12:00:00Z`);
    return new Date(value).toISOString();
  };
  const fields = { from: time(from), to: time(to), text, fingerprint };
  return {
    ...(status.length > 0 && { status }),
    ...Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)),
  };
}

/** A search answers in pages; a page may be short, or empty, while there are more. */
export async function searchJobs(
  client: ApiClient,
  endpoint: EndpointView,
  { status, ...fields }: Record<string, unknown>,
  limit: number,
): Promise<JobEntry[]> {
  const found: JobEntry[] = [];
  let cursor: string | null = null;
  do {
    const query = new URLSearchParams(fields as Record<string, string>);
    if (Array.isArray(status)) query.set('status', status.join(','));
    query.set('limit', String(Math.min(1000, limit - found.length)));
    if (cursor !== null) query.set('cursor', cursor);
    const page: JobPage = await client.get<JobPage>(endpointPath(endpoint, `/jobs?${query.toString()}`));
    found.push(...page.jobs);
    cursor = page.pagination.nextCursor;
  } while (cursor !== null && found.length < limit);
  return found;
}
