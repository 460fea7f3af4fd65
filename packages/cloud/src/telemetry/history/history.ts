import type { Caller } from '../../domain/caller.ts';
import { HOUR_MS, mergeRollup, MINUTE_MS } from '../../domain/history/rollup.ts';
import type { Rollup } from '../../domain/history/rollup.ts';
import { workerHistoryId } from '../../domain/history/worker-history.ts';
import { dollars } from '../../domain/money.ts';
import { COST_PARTS } from '../../domain/usage-records.ts';
import { totalsFromIntervals } from '../../metering/usage-totals.ts';
import type { HistoryStep, HistoryStore } from '../../store/history-store.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';
import type { Clock } from '../../support/clock.ts';
import { ruleError } from '../../support/errors.ts';

export const DEFAULT_RANGE = '1h';
const MAX_POINTS = 1_500;
const MINUTES_KEPT_MS = 48 * HOUR_MS;
/** The default step gives about this many points. */
const DEFAULT_POINTS = 60;
const STEPS_MS = [1, 2, 5, 10, 15, 30, 60, 120, 360, 720, 1_440].map((minutes) => minutes * MINUTE_MS);

/** `range` and `step` as texts such as 90m, 6h or 7d. */
export interface HistoryQuery {
  range?: string | undefined;
  step?: string | undefined;
}

export interface HistoryPoint {
  /** Milliseconds since 1970. */
  start: number;
  data: Rollup;
  /** US dollars. */
  cost: number;
}

interface Window {
  from: number;
  to: number;
  stepMs: number;
}

export interface HistoryAnswer extends Window {
  /** One for each step, oldest first. */
  points: HistoryPoint[];
  /** All of them together. */
  total: Omit<HistoryPoint, 'start'>;
}

export interface HistoryDeps {
  store: HistoryStore;
  ledger: Pick<LedgerStore, 'listIntervals'>;
  clock: Clock;
  keepDays: number;
}

/** What happened to an endpoint or a pod, step by step. Whoever asks has checked that it is the caller's. */
export class History {
  readonly #deps: HistoryDeps;

  constructor(deps: HistoryDeps) {
    this.#deps = deps;
  }

  async read(
    { accountId }: Pick<Caller, 'accountId'>,
    resource: { kind: 'serverless' | 'pod'; id: string },
    query: HistoryQuery,
  ): Promise<HistoryAnswer> {
    const window = this.#window(query);
    const answer = await this.#points(resource.id, window.stepMs < HOUR_MS ? 'minute' : 'hour', window);
    await this.#addCosts(accountId, resource, answer.points, window.stepMs);
    answer.total.cost = answer.points.reduce((sum, { cost }) => sum + cost, 0);
    return answer;
  }

  /**
   * What one worker used, also one that has ended; by minutes, so of the last two days. It has no cost of its
   * own.
   */
  async readWorker(endpointId: string, workerId: string, query: HistoryQuery): Promise<HistoryAnswer> {
    if (parseDuration('range', query.range ?? DEFAULT_RANGE) > MINUTES_KEPT_MS)
      throw ruleError(`range ${query.range ?? ''} is too long: the history of a worker is kept for 48 hours`);
    return this.#points(workerHistoryId(endpointId, workerId), 'minute', this.#window(query));
  }

  async #points(resourceId: string, step: HistoryStep, window: Window): Promise<HistoryAnswer> {
    const { from, to, stepMs } = window;
    const points = Array.from({ length: (to - from) / stepMs }, (_, index): HistoryPoint => {
      return { start: from + index * stepMs, data: {}, cost: 0 };
    });
    const total: HistoryAnswer['total'] = { data: {}, cost: 0 };
    for (const { start, data } of await this.#deps.store.read(resourceId, step, from, to)) {
      const point = points[Math.floor((start - from) / stepMs)];
      if (point !== undefined) mergeRollup(point.data, data);
      mergeRollup(total.data, data);
    }
    return { ...window, points, total };
  }

  /** The last step is the one that has begun. */
  #window({ range = DEFAULT_RANGE, step }: HistoryQuery): Window {
    const { clock, keepDays } = this.#deps;
    const rangeMs = parseDuration('range', range);
    if (rangeMs > keepDays * 24 * HOUR_MS)
      throw ruleError(`range ${range} is too long: history is kept for ${keepDays} days (history.days)`);
    const stepMs = step === undefined ? defaultStep(rangeMs) : parseDuration('step', step);
    if (stepMs >= HOUR_MS && stepMs % HOUR_MS !== 0)
      throw ruleError(`step ${step ?? ''} must be whole hours, or less than an hour`);
    if (stepMs < HOUR_MS && rangeMs > MINUTES_KEPT_MS)
      throw ruleError(`step must be at least 1h for a range of more than 48h: minutes are kept for two days`);
    if (stepMs > rangeMs) throw ruleError(`step ${step ?? ''} must not be longer than range ${range}`);
    if (rangeMs / stepMs > MAX_POINTS)
      throw ruleError(`that would be more than ${MAX_POINTS} points; use a longer step or a shorter range`);
    const to = (Math.floor(clock.now() / stepMs) + 1) * stepMs;
    return { from: to - Math.ceil(rangeMs / stepMs) * stepMs, to, stepMs };
  }

  async #addCosts(
    accountId: string,
    { kind, id }: { kind: 'serverless' | 'pod'; id: string },
    points: readonly HistoryPoint[],
    stepMs: number,
  ): Promise<void> {
    const buckets = points.map(({ start }) => ({ start: start / 1000, end: (start + stepMs) / 1000 }));
    const [first, last] = [buckets[0], buckets.at(-1)];
    if (first === undefined || last === undefined) return;
    const intervals = await this.#deps.ledger.listIntervals({
      accountId,
      kind,
      from: first.start,
      to: last.end,
      resourceId: id,
    });
    const now = Math.floor(this.#deps.clock.now() / 1000);
    for (const { start, amounts } of totalsFromIntervals(intervals, buckets, now, () => id)) {
      const point = points[(start - first.start) / (stepMs / 1000)];
      if (point !== undefined)
        point.cost = dollars(COST_PARTS.reduce((sum, part) => sum + amounts[part], 0n));
    }
  }
}

function defaultStep(rangeMs: number): number {
  const shortest = rangeMs > MINUTES_KEPT_MS ? HOUR_MS : MINUTE_MS;
  const wanted = Math.max(shortest, rangeMs / DEFAULT_POINTS);
  return STEPS_MS.find((stepMs) => stepMs >= wanted) ?? 24 * HOUR_MS;
}

const UNITS = { m: MINUTE_MS, h: HOUR_MS, d: 24 * HOUR_MS } as const;

function parseDuration(name: string, text: string): number {
  const [, count, unit] = /^([1-9]\d{0,4})([mhd])$/.exec(text) ?? [];
  if (count === undefined)
    throw ruleError(
      `${name} must be a number and m, h or d, such as 90m, 6h or 7d; it is ${JSON.stringify(text)}`,
    );
  return Number(count) * UNITS[unit as keyof typeof UNITS];
}
