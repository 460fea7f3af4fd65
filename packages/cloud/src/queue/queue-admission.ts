import { DISK_SHARE, diskShareError, quotaError } from '../domain/quotas.ts';
import type { QuotaLimits, QuotaOwner } from '../domain/quotas.ts';
import type { JobStore } from '../store/job-store.ts';
import type { RateShare } from '../support/rate-limiter.ts';

/** How old a count may be before the store is asked again. */
const MAX_AGE_MS = 1_000;
/** How soon it is asked again before a job is refused. */
const MIN_AGE_MS = 100;
/** Bytes are counted row by row: that may take this part of the time at most. */
const BYTE_COUNT_SHARE = 50;

export interface QueueAdmissionDeps {
  store: Pick<JobStore, 'queuedJobs' | 'queuedBytes'>;
  limitsOf(accountId: string): QuotaLimits;
  installationLimits(): QuotaLimits;
  /** How many bytes an account may have in its queues while the disk is nearly full; undefined otherwise. */
  diskShare?(): number | undefined;
  /** With the other servers on the database. */
  shared?: { jobs: RateShare; bytes: RateShare };
  /** Milliseconds that never go back. */
  now(): number;
}

/** What waits in the queues of one owner, as far as this server knows. */
interface QueuedCount {
  jobs: number;
  bytes: number;
  jobsReadAt: number;
  bytesReadAt: number;
  /** No earlier than this. */
  nextByteCountAt: number;
  /** Admitted, and perhaps not in the store yet. */
  storing: { jobs: number; bytes: number };
  /** Of those, what has got there, or has failed, since the last reading began. */
  settled: { jobs: number; bytes: number };
  reading: Promise<void> | undefined;
}

/** Whose limits apply to a job, with the key of its count. */
interface LimitOwner {
  key: string;
  owner: QuotaOwner | typeof DISK_SHARE;
  limits: QuotaLimits;
}

const ALL = '';

/**
 * Keeps accounts within their limits for queued jobs and bytes. An account without limits costs nothing. For
 * the others, this server adds up what it and the other servers accept, and reads the count from the store
 * once a second and before it refuses. So one server admits no more than the limit; several servers together
 * may exceed it by what the others accept before they report it, about 20 ms.
 */
export class QueueAdmission {
  readonly #deps: QueueAdmissionDeps;
  readonly #counts = new Map<string, QueuedCount>();

  constructor(deps: QueueAdmissionDeps) {
    this.#deps = deps;
    // An owner that has no count here has it read from the store when its first job comes.
    deps.shared?.jobs.subscribe((key, jobs) => {
      const count = this.#counts.get(key);
      if (count !== undefined) count.jobs += jobs;
    });
    deps.shared?.bytes.subscribe((key, bytes) => {
      const count = this.#counts.get(key);
      if (count !== undefined) count.bytes += bytes;
    });
  }

  /**
   * Undefined for an account without limits. What it resolves to is called when the job is in the store, or
   * not.
   */
  admit(accountId: string, request: string): Promise<() => void> | undefined {
    const own = this.#deps.limitsOf(accountId);
    const all = this.#deps.installationLimits();
    const share = this.#deps.diskShare?.();
    if (share === undefined && !hasQueueLimit(own) && !hasQueueLimit(all)) return undefined;
    const owners: LimitOwner[] = [];
    if (hasQueueLimit(own)) owners.push({ key: accountId, owner: 'account', limits: own });
    if (hasQueueLimit(all)) owners.push({ key: ALL, owner: 'installation', limits: all });
    if (share !== undefined)
      owners.push({ key: accountId, owner: DISK_SHARE, limits: { queuedBytes: share } });
    const bytes = Buffer.byteLength(request);
    const now = this.#deps.now();
    const isFine = owners.every(({ key, limits }) => {
      const count = this.#counts.get(key);
      return (
        count !== undefined &&
        now - count.jobsReadAt < MAX_AGE_MS &&
        exceeded(count, bytes, limits) === undefined
      );
    });
    if (isFine) return Promise.resolve(this.#add(owners, bytes));
    return this.#readAndCheck(owners, bytes);
  }

  async #readAndCheck(owners: readonly LimitOwner[], bytes: number): Promise<() => void> {
    for (const { key, owner, limits } of owners) {
      const count = this.#countOf(key);
      await (count.reading ??= this.#read(key, count, limits, bytes).finally(
        () => (count.reading = undefined),
      ));
      const name = exceeded(count, bytes, limits);
      if (name === undefined) continue;
      const [used, added] = name === 'queuedJobs' ? [count.jobs, 1] : [count.bytes, bytes];
      if (owner === DISK_SHARE) throw diskShareError('queues', count.bytes, limits.queuedBytes ?? 0);
      throw quotaError(name, owner, { used, added, limit: limits[name] ?? 0 });
    }
    return this.#add(owners, bytes);
  }

  async #read(key: string, count: QueuedCount, limits: QuotaLimits, bytes: number): Promise<void> {
    const { store, now } = this.#deps;
    const accountId = key === ALL ? undefined : key;
    if (now() - count.jobsReadAt >= MIN_AGE_MS) {
      count.settled.jobs = 0;
      const jobs = withUnstored(await store.queuedJobs(accountId), count, 'jobs');
      // Of fewer jobs, the bytes are fewer in proportion, until they are counted again.
      count.bytes = Math.round((count.bytes * Math.min(jobs, count.jobs)) / Math.max(1, count.jobs));
      count.jobs = jobs;
      count.jobsReadAt = now();
    }
    const isUnsure = count.bytesReadAt === -Infinity || exceeded(count, bytes, limits) === 'queuedBytes';
    if (limits.queuedBytes === undefined || !isUnsure || now() < count.nextByteCountAt) return;
    const from = now();
    count.settled.bytes = 0;
    count.bytes = withUnstored(await store.queuedBytes(accountId), count, 'bytes');
    count.bytesReadAt = now();
    count.nextByteCountAt =
      count.bytesReadAt + Math.max(MIN_AGE_MS, BYTE_COUNT_SHARE * (count.bytesReadAt - from));
  }

  #add(owners: readonly { key: string }[], bytes: number): () => void {
    const keys = [...new Set(owners.map(({ key }) => key))];
    const counts = keys.map((key) => this.#countOf(key));
    for (const key of keys) {
      this.#deps.shared?.jobs.publish(key);
      this.#deps.shared?.bytes.publish(key, bytes);
    }
    for (const count of counts) {
      count.jobs += 1;
      count.bytes += bytes;
      count.storing.jobs += 1;
      count.storing.bytes += bytes;
    }
    return () => {
      for (const { storing, settled } of counts) {
        storing.jobs -= 1;
        storing.bytes -= bytes;
        settled.jobs += 1;
        settled.bytes += bytes;
      }
    };
  }

  #countOf(key: string): QueuedCount {
    let count = this.#counts.get(key);
    if (count === undefined) {
      count = {
        jobs: 0,
        bytes: 0,
        jobsReadAt: -Infinity,
        bytesReadAt: -Infinity,
        nextByteCountAt: -Infinity,
        storing: { jobs: 0, bytes: 0 },
        settled: { jobs: 0, bytes: 0 },
        reading: undefined,
      };
      this.#counts.set(key, count);
    }
    return count;
  }
}

/**
 * The count of the store, with the jobs that it has missed: those that are still being stored, and some of those
 * that were stored while it counted. How many of the latter it missed follows from what this server has added up.
 */
function withUnstored(found: number, count: QueuedCount, what: 'jobs' | 'bytes'): number {
  const least = found + count.storing[what];
  return Math.max(least, Math.min(least + count.settled[what], count[what]));
}

function hasQueueLimit({ queuedJobs, queuedBytes }: QuotaLimits): boolean {
  return queuedJobs !== undefined || queuedBytes !== undefined;
}

function exceeded(
  { jobs, bytes }: QueuedCount,
  added: number,
  { queuedJobs = Infinity, queuedBytes = Infinity }: QuotaLimits,
): 'queuedJobs' | 'queuedBytes' | undefined {
  if (jobs + 1 > queuedJobs) return 'queuedJobs';
  return bytes + added > queuedBytes ? 'queuedBytes' : undefined;
}
