import { ERROR_PREFIX_CHARS } from '../../domain/error-fingerprint.ts';
import { JOB_STATUSES } from '../../domain/job-records.ts';
import type { JobStatus } from '../../domain/job-records.ts';
import { FAILED_STATUSES, seqRange } from '../../domain/job-search-query.ts';
import type { FoundJob } from '../../domain/job-search-query.ts';
import type { JobSearchQuery } from '../job-store.ts';
import type { Value } from '../sql.ts';
import { JOB_SELECT, JOB_SELECT_LENGTH, jobFromValues, PAYLOAD_BYTES } from './jobs.table.ts';

/** Which index a search goes through. */
export type SearchIndex = 'all' | 'running' | 'waiting' | 'failed';

const isFailed = (status: string): boolean => FAILED_STATUSES.some((failed) => failed === status);
/** As in the definition of the index: a partial index is used where its condition is part of the question. */
const FAILED = `job.status in ('FAILED', 'TIMED_OUT')`;

/**
 * `fewWait`: waiting jobs are not in the order of their numbers, so their index serves only where they are
 * few.
 */
export function searchIndex({ statuses = [] }: JobSearchQuery, fewWait: boolean): SearchIndex {
  if (statuses.length > 0 && statuses.every(isFailed)) return 'failed';
  if (statuses.length !== 1) return 'all';
  if (statuses[0] === 'IN_PROGRESS') return 'running';
  return statuses[0] === 'IN_QUEUE' && fewWait ? 'waiting' : 'all';
}

const INDEX_CONDITIONS: Record<SearchIndex, string> = {
  all: '',
  running: `and job.status = 'IN_PROGRESS'`,
  waiting: `and job.status = 'IN_QUEUE'`,
  failed: `and ${FAILED}`,
};

/** Which rows are scanned: they are counted before anything else of them is read. */
export function scannedRows(index: SearchIndex): string {
  return `job.endpoint_id = :endpoint_id and job.seq >= :from_seq and job.seq < :before_seq ${INDEX_CONDITIONS[index]}`;
}

/** Which of them match. `containsText` is the condition of the database for `:text`. */
export function matchingRows(query: JobSearchQuery, containsText: string): string {
  const { statuses, from, to, idPrefix, text } = query;
  return [
    `(job.status in ('IN_QUEUE', 'IN_PROGRESS') or job.due_at > :now)`,
    ...(statuses === undefined ? [] : [hasStatus(statuses)]),
    ...(from === undefined ? [] : ['job.created_at >= :from']),
    ...(to === undefined ? [] : ['job.created_at < :to']),
    ...(idPrefix === undefined ? [] : ['substr(job.id, 1, :id_length) = :id_prefix']),
    ...(text === undefined ? [] : [containsText]),
  ].join(' and ');
}

/** In a fixed order, so that equal questions are equal statements. */
function hasStatus(statuses: readonly JobStatus[]): string {
  const wanted = JOB_STATUSES.filter((status) => statuses.includes(status));
  return wanted.length === 0
    ? 'false'
    : `job.status in (${wanted.map((status) => `'${status}'`).join(', ')})`;
}

export const FOUND_SELECT = `${JOB_SELECT}, substr(job.error, 1, ${ERROR_PREFIX_CHARS}), ${PAYLOAD_BYTES}`;

export function searchValues(endpoint_id: string, query: JobSearchQuery): Record<string, Value> {
  const range = seqRange(query);
  const { now, from, to, idPrefix, text } = query;
  return {
    endpoint_id,
    now,
    from_seq: range.from,
    before_seq: Math.min(range.before, query.before ?? Number.MAX_SAFE_INTEGER),
    ...(from !== undefined && { from }),
    ...(to !== undefined && { to }),
    ...(idPrefix !== undefined && { id_prefix: idPrefix, id_length: idPrefix.length }),
    ...(text !== undefined && { text: asciiLowerCase(text) }),
  };
}

export function foundJobFromValues(values: readonly Value[]): FoundJob {
  const [error, bytes] = values.slice(JOB_SELECT_LENGTH) as [string | null, number];
  return { job: jobFromValues(values), error, bytes: Number(bytes) };
}

/** As `lower` of both databases does it. */
function asciiLowerCase(text: string): string {
  return text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
}
