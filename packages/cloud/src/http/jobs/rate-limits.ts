import type { Clock } from '../../support/clock.ts';
import { BerthError } from '../../support/errors.ts';

/** Requests in ten seconds and at the same time, for each account, endpoint and operation. */
export interface OperationLimit {
  per10s: number;
  concurrent: number;
}

const WINDOW_MS = 10_000;
/** Every running worker raises the limit by this much: a large fleet is there to be used. */
const PER_RUNNING_WORKER = 100;

export const JOB_LIMITS: Readonly<Record<string, OperationLimit>> = {
  run: { per10s: 1000, concurrent: 200 },
  runsync: { per10s: 2000, concurrent: 400 },
  status: { per10s: 2000, concurrent: 400 },
  'status-sync': { per10s: 2000, concurrent: 400 },
  stream: { per10s: 2000, concurrent: 400 },
  openai: { per10s: 2000, concurrent: 400 },
  cancel: { per10s: 100, concurrent: 20 },
  retry: { per10s: 100, concurrent: 20 },
  'purge-queue': { per10s: 2, concurrent: 2 },
  requests: { per10s: 10, concurrent: 2 },
  health: { per10s: 2000, concurrent: 400 },
};

interface Use {
  since: number;
  count: number;
  open: number;
}

/** Counts what each account does with each endpoint. */
export class JobRateLimits {
  readonly #clock: Clock;
  readonly #limits: Readonly<Record<string, OperationLimit>>;
  readonly #uses = new Map<string, Use>();
  #sweptAt = 0;

  constructor(clock: Clock, limits: Readonly<Record<string, OperationLimit>> = JOB_LIMITS) {
    this.#clock = clock;
    this.#limits = limits;
  }

  /** Lets one request in, or throws. Call the answer when it has been answered. */
  enter(accountId: string, endpointId: string, operation: string, runningWorkers: () => number): () => void {
    const limit = this.#limits[operation];
    if (limit === undefined) return () => undefined;
    const now = this.#clock.now();
    this.#sweep(now);
    const key = `${accountId} ${endpointId} ${operation}`;
    const use = this.#uses.get(key) ?? { since: now, count: 0, open: 0 };
    this.#uses.set(key, use);
    if (now - use.since >= WINDOW_MS || now < use.since) Object.assign(use, { since: now, count: 0 });
    const full = use.count >= limit.per10s && use.count >= runningWorkers() * PER_RUNNING_WORKER;
    if (full || use.open >= limit.concurrent) {
      const seconds = full ? Math.max(1, Math.ceil((use.since + WINDOW_MS - now) / 1000)) : 1;
      throw new BerthError('rate', `too many requests: ${full ? `at most ${limit.per10s} of ${operation} in 10 s` : `at most ${limit.concurrent} of ${operation} at the same time`}; try again in ${seconds} s`, {
        headers: { 'retry-after': String(seconds) },
      });
    }
    use.count += 1;
    use.open += 1;
    return () => {
      use.open -= 1;
    };
  }

  #sweep(now: number): void {
    if (now - this.#sweptAt < WINDOW_MS) return;
    this.#sweptAt = now;
    for (const [key, use] of this.#uses) if (use.open === 0 && now - use.since >= WINDOW_MS) this.#uses.delete(key);
  }
}
