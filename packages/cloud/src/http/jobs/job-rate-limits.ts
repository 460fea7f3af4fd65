import { isRecent } from '../../support/clock.ts';
import type { Clock } from '../../support/clock.ts';
import type { Config } from '../../support/config/config.ts';
import { settingList } from '../../support/config/settings.ts';
import type { OperationLimit } from '../../support/config/operation-limit.setting.ts';
import { BerthError } from '../../support/errors.ts';

const SECTION = 'jobLimits.';
const WINDOW_MS = 10_000;
/** Every running worker raises the limit by this much: a large fleet is there to be used. */
const LIMIT_PER_RUNNING_WORKER = 100;

export type JobOperationLimits = Readonly<Record<string, OperationLimit>>;

/** The limits that the operator sets, by the operation as it stands in the path. One that is off is not there. */
export function enabledJobLimits({
  statusSync,
  purgeQueue,
  ...others
}: Config['jobLimits']): JobOperationLimits {
  const all = { ...others, 'status-sync': statusSync, 'purge-queue': purgeQueue };
  return Object.fromEntries(
    Object.entries(all).filter((entry): entry is [string, OperationLimit] => entry[1] !== 'off'),
  );
}

/** Those that hold where the operator says nothing. */
export const DEFAULT_JOB_LIMITS: JobOperationLimits = enabledJobLimits(
  Object.fromEntries(
    settingList
      .filter(({ path }) => path.startsWith(SECTION))
      .map(({ path, setting }) => [path.slice(SECTION.length), setting.default]),
  ) as Config['jobLimits'],
);

interface UsageWindow {
  since: number;
  count: number;
  open: number;
}

/** Counts what each account does with each endpoint. */
export class JobRateLimits {
  readonly #clock: Clock;
  readonly #limits: JobOperationLimits;
  readonly #uses = new Map<string, UsageWindow>();
  #sweptAt = 0;

  constructor(clock: Clock, limits: JobOperationLimits = DEFAULT_JOB_LIMITS) {
    this.#clock = clock;
    this.#limits = limits;
  }

  /** How many accounts, endpoints and operations are remembered. */
  get size(): number {
    return this.#uses.size;
  }

  /** Lets one request in, or throws. Call the answer when it has been answered. */
  acquire(
    accountId: string,
    endpointId: string,
    operation: string,
    runningWorkers: () => number,
  ): () => void {
    const limit = this.#limits[operation];
    if (limit === undefined) return () => undefined;
    const now = this.#clock.now();
    this.#sweep(now);
    const key = `${accountId} ${endpointId} ${operation}`;
    const use = this.#uses.get(key) ?? { since: now, count: 0, open: 0 };
    this.#uses.set(key, use);
    if (!isRecent(use.since, WINDOW_MS, now)) Object.assign(use, { since: now, count: 0 });
    const most =
      use.count < limit.per10s
        ? limit.per10s
        : Math.max(limit.per10s, runningWorkers() * LIMIT_PER_RUNNING_WORKER);
    const full = use.count >= most;
    if (full || use.open >= limit.concurrent) {
      const seconds = full ? Math.max(1, Math.ceil((use.since + WINDOW_MS - now) / 1000)) : 1;
      throw new BerthError(
        'rate',
        `too many requests: ${full ? `at most ${most} of ${operation} in 10 s` : `at most ${limit.concurrent} of ${operation} at the same time`}; try again in ${seconds} s`,
        {
          headers: { 'retry-after': String(seconds) },
        },
      );
    }
    use.count += 1;
    use.open += 1;
    return () => {
      use.open -= 1;
    };
  }

  #sweep(now: number): void {
    if (isRecent(this.#sweptAt, WINDOW_MS, now)) return;
    this.#sweptAt = now;
    for (const [key, use] of this.#uses)
      if (use.open === 0 && !isRecent(use.since, WINDOW_MS, now)) this.#uses.delete(key);
  }
}
