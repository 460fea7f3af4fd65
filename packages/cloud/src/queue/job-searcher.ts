import { setImmediate as nextTurn } from 'node:timers/promises';
import { errorFingerprint } from '../domain/error-fingerprint.ts';
import type { ErrorFingerprint } from '../domain/error-fingerprint.ts';
import { isPastRetention } from '../domain/job-records.ts';
import type { JobWithPayloads } from '../domain/job-records.ts';
import { FAILED_STATUSES } from '../domain/job-search-query.ts';
import type { FoundJob, JobSearchFilter } from '../domain/job-search-query.ts';
import { JOB_SEARCH, SMALL_ANSWER_BYTES } from '../domain/limits.ts';
import type { JobStore } from '../store/job-store.ts';
import type { Clock } from '../support/clock.ts';
import { countWithinBytes } from './job-listing.ts';

/** Rows of one query: it returns within milliseconds, and other requests are served between two of them. */
const PAGE_ROWS = 2_000;
/** Requests are read whole to look for a text in them. */
const TEXT_PAGE_ROWS = 500;
/** Approximate limit for the payloads that are read at a time. */
const BATCH_BYTES = 1024 * 1024;
const MAX_GROUPS = 500;

export interface JobSearchDeps {
  store: Pick<JobStore, 'search' | 'findAll'>;
  clock: Clock;
  /** Bounds of one search; default: `JOB_SEARCH`. */
  bounds?: { rows: number; milliseconds: number };
}

export interface JobSearchResult {
  jobs: FoundJob[];
  /** The maximum number of scanned jobs. */
  scanned: number;
  /** Goes on `before` this number; undefined where there are no older jobs. */
  next: number | undefined;
}

/** The errors that have one fingerprint. */
export interface ErrorGroup extends ErrorFingerprint {
  count: number;
  /** When the first and the last of them ended. */
  firstSeen: number;
  lastSeen: number;
  /** The newest of them. */
  sample: FoundJob;
}

/**
 * Finds jobs among many. One search scans a bounded number of jobs and returns where the next one continues.
 */
export class JobSearcher {
  readonly #deps: JobSearchDeps;

  constructor(deps: JobSearchDeps) {
    this.#deps = deps;
  }

  /** Newest first, up to `limit`. */
  async search(
    endpointId: string,
    filter: JobSearchFilter,
    { before, limit }: { before?: number | undefined; limit: number },
  ): Promise<JobSearchResult> {
    const jobs: FoundJob[] = [];
    const { scanned, next } = await this.#scan(endpointId, filter, before, limit, (found) => {
      jobs.push(...found);
      return limit - jobs.length;
    });
    return { jobs, scanned, next };
  }

  /**
   * The errors of failed jobs by fingerprint, the most frequent first. `complete`: no older jobs are left
   * out.
   */
  async errorGroups(
    endpointId: string,
    filter: Pick<JobSearchFilter, 'from' | 'to'>,
  ): Promise<{ groups: ErrorGroup[]; scanned: number; complete: boolean }> {
    const groups = new Map<string, ErrorGroup>();
    const failed = { ...filter, statuses: FAILED_STATUSES };
    const { scanned, next } = await this.#scan(endpointId, failed, undefined, PAGE_ROWS, (found) => {
      for (const job of found) addToGroup(groups, job);
      return PAGE_ROWS;
    });
    const sorted = [...groups.values()].sort((one, other) => other.count - one.count);
    return { groups: sorted.slice(0, MAX_GROUPS), scanned, complete: next === undefined };
  }

  /** What small jobs carry, by their numbers. Large ones, and those that are gone, are left out. */
  async readSmall(endpointId: string, jobs: readonly FoundJob[]): Promise<Map<number, JobWithPayloads>> {
    const found = new Map<number, JobWithPayloads>();
    const wanted = jobs
      .filter(({ bytes }) => bytes <= SMALL_ANSWER_BYTES)
      .map(({ job, bytes }) => ({ seq: job.seq, bytes }));
    while (wanted.length > 0) {
      const piece = wanted.splice(0, countWithinBytes(wanted, BATCH_BYTES)).map(({ seq }) => seq);
      for (const whole of await this.#deps.store.findAll(endpointId, piece))
        if (!isPastRetention(whole.job, this.#deps.clock.now())) found.set(whole.job.seq, whole);
      await nextTurn();
    }
    return found;
  }

  /** Calls `onFound`, which says how many more are wanted, until the jobs, the rows or the time are over. */
  async #scan(
    endpointId: string,
    { fingerprint, ...filter }: JobSearchFilter,
    first: number | undefined,
    limit: number,
    onFound: (found: FoundJob[]) => number,
  ): Promise<{ scanned: number; next: number | undefined }> {
    const { store, clock, bounds = JOB_SEARCH } = this.#deps;
    const pageRows = filter.text === undefined ? PAGE_ROWS : TEXT_PAGE_ROWS;
    const until = performance.now() + bounds.milliseconds;
    let [scanned, wanted, next] = [0, limit, first];
    do {
      const maxRowsScanned = Math.min(pageRows, bounds.rows - scanned);
      const page = await store.search(endpointId, {
        ...filter,
        limit: fingerprint === undefined ? wanted : maxRowsScanned,
        maxRowsScanned,
        now: clock.now(),
        ...(next !== undefined && { before: next }),
      });
      const matching =
        fingerprint === undefined
          ? page.jobs
          : page.jobs.filter((found) => hasFingerprint(found, fingerprint));
      const taken = matching.slice(0, wanted);
      wanted = onFound(taken);
      scanned += maxRowsScanned;
      next = taken.length < matching.length ? taken.at(-1)?.job.seq : page.next;
      await nextTurn();
    } while (next !== undefined && wanted > 0 && scanned < bounds.rows && performance.now() < until);
    return { scanned, next };
  }
}

function hasFingerprint({ error }: FoundJob, fingerprint: string): boolean {
  return error !== null && errorFingerprint(error).fingerprint === fingerprint;
}

function addToGroup(groups: Map<string, ErrorGroup>, found: FoundJob): void {
  const described = errorFingerprint(found.error ?? '""');
  const at = found.job.endedAt ?? found.job.createdAt;
  const group = groups.get(described.fingerprint);
  if (group === undefined) {
    groups.set(described.fingerprint, { ...described, count: 1, firstSeen: at, lastSeen: at, sample: found });
    return;
  }
  group.count += 1;
  group.firstSeen = Math.min(group.firstSeen, at);
  group.lastSeen = Math.max(group.lastSeen, at);
}
