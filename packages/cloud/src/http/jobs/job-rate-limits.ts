import type { Clock } from '../../support/clock.ts';
import type { Config } from '../../support/config/config.ts';
import { settingList } from '../../support/config/settings.ts';
import type { OperationLimit } from '../../support/config/operation-limit.setting.ts';
import { BerthError } from '../../support/errors.ts';
import { RateLimiter } from '../../support/rate-limiter.ts';
import type { RateShare } from '../../support/rate-limiter.ts';

const SECTION = 'jobLimits.';
const WINDOW_SECONDS = 10;
/** Each running worker raises the limit by this much, so that a large fleet can be kept busy. */
const LIMIT_PER_RUNNING_WORKER = 100;

export type JobOperationLimits = Readonly<Record<string, OperationLimit>>;

/** The limits of the configuration, by the operation's name in the path. Limits that are off are left out. */
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

/** The limits of an empty configuration. */
export const DEFAULT_JOB_LIMITS: JobOperationLimits = enabledJobLimits(
  Object.fromEntries(
    settingList
      .filter(({ path }) => path.startsWith(SECTION))
      .map(({ path, setting }) => [path.slice(SECTION.length), setting.default]),
  ) as Config['jobLimits'],
);

/** The rate limits of the job API, by account, endpoint and operation. */
export class JobRateLimits {
  readonly #limits: JobOperationLimits;
  readonly #limiter: RateLimiter;

  constructor(clock: Clock, limits: JobOperationLimits = DEFAULT_JOB_LIMITS, share?: RateShare) {
    this.#limits = limits;
    this.#limiter = new RateLimiter(clock, [WINDOW_SECONDS], share);
  }

  /** How many combinations of account, endpoint and operation are in memory. */
  get size(): number {
    return this.#limiter.size;
  }

  /**
   * Counts a request, or throws if a limit is reached. Call the returned function when the request has ended.
   */
  acquire(
    accountId: string,
    endpointId: string,
    operation: string,
    runningWorkers: () => number,
  ): () => void {
    const limit = this.#limits[operation];
    if (limit === undefined) return () => undefined;
    const quota = (used: number): number =>
      used < limit.per10s
        ? limit.per10s
        : Math.max(limit.per10s, runningWorkers() * LIMIT_PER_RUNNING_WORKER);
    const { exceeded, release } = this.#limiter.acquire(`${accountId} ${endpointId} ${operation}`, {
      quotas: [quota],
      maxOpen: limit.concurrent,
    });
    if (exceeded === undefined) return release;
    const [rule, seconds] =
      exceeded === 'open'
        ? [`at most ${limit.concurrent} of ${operation} at the same time`, 1]
        : [`at most ${exceeded.quota} of ${operation} in ${WINDOW_SECONDS} s`, exceeded.secondsLeft];
    throw new BerthError('rate', `too many requests: ${rule}; try again in ${seconds} s`, {
      headers: { 'retry-after': String(seconds) },
    });
  }
}
