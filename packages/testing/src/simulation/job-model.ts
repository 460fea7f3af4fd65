import type { JournalEntry } from './simulation-storage.ts';
import { resultOf } from './simulated-worker.ts';
import type { SimulatedWorker } from './simulated-worker.ts';

const ENDED = new Set(['COMPLETED', 'FAILED', 'CANCELLED', 'TIMED_OUT']);
const NEXT: Readonly<Record<string, readonly string[]>> = {
  IN_QUEUE: ['IN_PROGRESS', 'CANCELLED', 'TIMED_OUT'],
  IN_PROGRESS: ['IN_PROGRESS', 'IN_QUEUE', 'COMPLETED', 'FAILED', 'CANCELLED', 'TIMED_OUT'],
  FAILED: ['IN_QUEUE'],
  TIMED_OUT: ['IN_QUEUE'],
};
/** Time may be off by the slewing of clocks, and by how often servers look. */
export const EARLY_MS = 3_000;
export const EARLY_SHARE = 0.02;
/** After this long without a fault, nothing may be taken from a worker that lives. */
const CALM_MS = 60_000;

/** A rule was broken. */
export class InvariantViolation extends Error {
  readonly about: string;

  /** `about`: the job, worker or instance. */
  constructor(about: string, message: string) {
    super(message);
    this.about = about;
  }
}

/** What is known of a job from the changes that were committed. All times are true ones. */
export interface ModelJob {
  id: string;
  seq: number;
  endpointId: string;
  status: string;
  isGone: boolean;
  queuedAt: number;
  takenAt: number;
  endedAt: number;
  /** Its status, each time that it ended. */
  ends: string[];
  /** How often it ended; a purge may have deleted it before the last of them. */
  endings: number;
  mayHavePurgedEnd: boolean;
  hasWebhook: boolean;
  output: string | null;
  isAcknowledged: boolean;
  /** A client asked for these: they may have happened. */
  wasCancelled: boolean;
  wasRetried: boolean;
  /** What a sweep does at this true time at the latest, by the settings of the job. */
  ttl: number;
}

export interface JobModelDeps {
  /** What was committed since the last time. */
  takeJournal(): JournalEntry[];
  now(): number;
  /** When the last fault was over. */
  lastFaultAt(): number;
  /** A frozen server may write what it began before. */
  longestDelay(): number;
  worker(id: string): SimulatedWorker | undefined;
  wasPurged(endpointId: string): boolean;
  trace(line: string): void;
}

/** Follows every committed change of a job, and checks that it keeps the rules. */
export class JobModel {
  readonly #deps: JobModelDeps;
  readonly jobs = new Map<number, ModelJob>();

  constructor(deps: JobModelDeps) {
    this.#deps = deps;
  }

  /** Learns what was committed. Throws where it breaks a rule. */
  refresh(): void {
    for (const entry of merged(this.#deps.takeJournal())) this.#apply(entry);
  }

  #apply(entry: JournalEntry): void {
    const { seq, id, before, after } = entry;
    this.#deps.trace(`job ${id} is ${after ?? 'deleted'}`);
    if (before === null) return this.#create(entry);
    const job = this.jobs.get(seq);
    if (job === undefined) throw new InvariantViolation(id, `a job that nobody submitted became ${after}`);
    if (after === null) this.#delete(job, entry);
    else this.#change(job, entry, after);
  }

  #create({ seq, id, endpointId, after, ttl, webhook }: JournalEntry): void {
    if (after !== 'IN_QUEUE') throw new InvariantViolation(id, `a new job is ${after}`);
    this.jobs.set(seq, {
      id,
      seq,
      endpointId,
      status: after,
      isGone: false,
      queuedAt: this.#deps.now(),
      takenAt: 0,
      endedAt: 0,
      ends: [],
      endings: 0,
      mayHavePurgedEnd: false,
      hasWebhook: webhook !== null,
      output: null,
      isAcknowledged: false,
      wasCancelled: false,
      wasRetried: false,
      ttl,
    });
  }

  #change(job: ModelJob, entry: JournalEntry, after: string): void {
    const { id, before, output } = entry;
    const now = this.#deps.now();
    const fail = (message: string): never => {
      throw new InvariantViolation(id, message);
    };
    if (job.isGone) fail(`a deleted job became ${after}`);
    if (before !== after && NEXT[job.status]?.includes(after) !== true)
      fail(`a job that is ${job.status} became ${after}`);
    if (ENDED.has(job.status) && before === after) fail(`the result of a job that is ${after} changed`);
    if (ENDED.has(job.status) && !job.wasRetried)
      fail(`a job that is ${job.status} became ${after} without a retry`);
    if (after === 'CANCELLED' && !job.wasCancelled) fail('a job that nobody cancelled is CANCELLED');
    if (after === 'IN_PROGRESS' && before === 'IN_QUEUE') job.takenAt = now;
    if (before === 'IN_PROGRESS') this.#checkEndOfAttempt(entry, after);
    if (after === 'TIMED_OUT') this.#checkTimeout(job, entry);
    if (before !== 'IN_QUEUE' && after === 'IN_QUEUE' && ENDED.has(job.status)) job.queuedAt = now;
    if (ENDED.has(after) && !ENDED.has(job.status)) {
      job.endedAt = now;
      job.ends.push(after);
      job.endings += 1;
    }
    job.status = after;
    job.output = output;
  }

  #checkEndOfAttempt(entry: JournalEntry, after: string): void {
    const { id, leaseBefore, workerBefore, output, error, attempt, attemptBefore } = entry;
    const worker = this.#deps.worker(workerBefore ?? '');
    const result = after === 'COMPLETED' ? output : error;
    const isResult = after === 'COMPLETED' || (after === 'FAILED' && result?.startsWith('"worker') === true);
    if (isResult) {
      const isOfHolder =
        worker?.hasLeases === true
          ? result === resultOf(workerBefore ?? '', id, leaseBefore ?? '')
          : result?.startsWith(`"${workerBefore} ${id} `) === true;
      if (!isOfHolder)
        throw new InvariantViolation(
          id,
          `the result ${result} is not of ${workerBefore}, who holds ${leaseBefore}`,
        );
      return;
    }
    // A job that its worker returned, or that was never sent, is as if it had not been taken.
    const isLost = (after === 'IN_QUEUE' && attempt === attemptBefore) || after === 'FAILED';
    const isCalm = this.#deps.now() - this.#deps.lastFaultAt() > CALM_MS;
    if (isLost && isCalm && worker?.isAlive === true)
      throw new InvariantViolation(id, `the job was taken from ${workerBefore} without a fault: ${error}`);
  }

  #checkTimeout(job: ModelJob, { id, executionTimeout, ttl, error }: JournalEntry): void {
    const now = this.#deps.now();
    const early = EARLY_MS + this.#deps.longestDelay();
    const isRun = error?.includes('execution timeout') === true;
    const [passed, limit] = isRun ? [now - job.takenAt, executionTimeout] : [now - job.queuedAt, ttl];
    if (passed < limit * (1 - EARLY_SHARE) - early)
      throw new InvariantViolation(
        id,
        `it timed out after ${Math.round(passed / 1000)} s instead of ${Math.round(limit / 1000)} s`,
      );
  }

  #delete(job: ModelJob, { id, before, ttl, retention }: JournalEntry): void {
    const now = this.#deps.now();
    job.isGone = true;
    const early = EARLY_MS + this.#deps.longestDelay();
    const isEarly = (since: number, limit: number): boolean =>
      now - since < limit * (1 - EARLY_SHARE) - early;
    const isOver = !isEarly(job.queuedAt, ttl);
    if (!isOver && before === 'IN_QUEUE' && this.#deps.wasPurged(job.endpointId)) return;
    if (isOver && !ENDED.has(job.status)) {
      job.ends.push('TIMED_OUT');
      job.endings += 1;
      job.mayHavePurgedEnd = this.#deps.wasPurged(job.endpointId);
      job.endedAt = now;
    }
    if (isOver || (ENDED.has(job.status) && !isEarly(job.endedAt, retention))) return;
    throw new InvariantViolation(id, `a job that is ${before} was deleted before its time`);
  }
}

/**
 * A transaction may write the status of a job first, and then its output and its error: that is one change.
 */
function merged(entries: readonly JournalEntry[]): JournalEntry[] {
  const changes: JournalEntry[] = [];
  for (const entry of entries) {
    const last = changes.at(-1);
    if (last?.seq === entry.seq && last.after === entry.before && entry.before === entry.after)
      Object.assign(last, { output: entry.output, error: entry.error });
    else changes.push(entry);
  }
  return changes;
}

export function hasEnded({ status, isGone }: ModelJob): boolean {
  return isGone || ENDED.has(status);
}
