import type { Caller } from '../domain/caller.ts';
import type { LedgerStore } from '../store/ledger-store.ts';
import type { Clock } from '../support/clock.ts';
import { BerthError, ruleError } from '../support/errors.ts';
import { bucketStart } from '../domain/time-buckets.ts';
import { dollars, dollarsPerHour } from '../domain/money.ts';
import { totalsFromIntervals, totalsFromRollups } from './usage-totals.ts';
import { resolveWindow } from '../domain/billing-window.ts';
import type { BillingWindow, WindowQuery } from '../domain/billing-window.ts';
import {
  type CostPart,
  type UsageInterval,
  type UsageIntervalQuery,
  type UsageKind,
  COST_PARTS,
  hardwareGroup,
  USAGE_KINDS,
  type UsageTotal,
} from '../domain/usage-records.ts';

/** Limits the memory that one answer takes. */
const MAX_RECORDS = 200_000;

/**
 * What usage is grouped by: the resource of the owner, the unit that ran, the GPU type, or any hardware (`gpu
 * X`, `cpu X`, a volume tier).
 */
export type BillingGrouping = 'resource' | 'unit' | 'gpuType' | 'hardware' | 'none';

export interface HistoryQuery extends WindowQuery {
  grouping: BillingGrouping;
  filter?: Omit<UsageIntervalQuery, 'accountId' | 'kind' | 'from' | 'to'>;
}

export interface History {
  window: BillingWindow;
  /** Ordered by time, then by group. Buckets without usage have none. */
  totals: UsageTotal[];
}

/** What an account has used and what it costs: the history and the current rates. */
export class Billing {
  readonly #ledger: LedgerStore;
  readonly #clock: Clock;

  constructor(ledger: LedgerStore, clock: Clock) {
    this.#ledger = ledger;
    this.#clock = clock;
  }

  /** The window that a query means now. */
  window(query: WindowQuery): BillingWindow {
    return resolveWindow(query, this.#clock.now());
  }

  async history({ accountId }: Caller, kind: UsageKind, query: HistoryQuery): Promise<History> {
    const now = this.#clock.now();
    const window = resolveWindow(query, now);
    const totals = isRolledUp(query)
      ? await this.#totalsFromRollups(accountId, [kind], query.grouping, window, now)
      : [await this.#totalsFromIntervals(accountId, kind, query, window, now)];
    return { window, totals: checkCount(totals[0] ?? [], query.grouping) };
  }

  /** All kinds at once. */
  async summary(
    { accountId }: Caller,
    query: WindowQuery,
  ): Promise<{ window: BillingWindow; byKind: Record<UsageKind, UsageTotal[]> }> {
    const now = this.#clock.now();
    const window = resolveWindow(query, now);
    const [pod = [], serverless = [], volume = [], cluster = []] = await this.#totalsFromRollups(
      accountId,
      USAGE_KINDS,
      'none',
      window,
      now,
    );
    return { window, byKind: { pod, serverless, volume, cluster } };
  }

  /** The same for several accounts, for an operator. */
  async summaries(
    caller: Caller,
    accountIds: readonly string[],
    query: WindowQuery,
  ): Promise<{ window: BillingWindow; byAccount: Map<string, Record<UsageKind, UsageTotal[]>> }> {
    if (!caller.operator)
      throw new BerthError(
        'forbidden',
        'only a key with full access of the root account may see what other accounts cost',
      );
    const byAccount = new Map<string, Record<UsageKind, UsageTotal[]>>();
    for (const accountId of accountIds)
      byAccount.set(accountId, (await this.summary({ ...caller, accountId }, query)).byKind);
    return { window: this.window(query), byAccount };
  }

  /** Current rates in US dollars per hour. */
  async currentSpend({
    accountId,
  }: Caller): Promise<{ total: number; localStorage: number; networkStorage: number; compute: number }> {
    const spend = { total: 0, localStorage: 0, networkStorage: 0, compute: 0 };
    for (const { kind, rates } of await this.#ledger.currentRates(accountId)) {
      const storage = rates.disk + rates.fastDisk;
      spend.compute += rates.gpu + rates.cpu;
      if (kind === 'volume') spend.networkStorage += storage;
      else spend.localStorage += storage;
    }
    const { compute, localStorage, networkStorage } = spend;
    return {
      total: dollarsPerHour(compute + localStorage + networkStorage),
      compute: dollarsPerHour(compute),
      localStorage: dollarsPerHour(localStorage),
      networkStorage: dollarsPerHour(networkStorage),
    };
  }

  /** What an account has spent since the start of the calendar month, in US dollars. */
  async spentThisMonth(accountId: string): Promise<number> {
    const now = this.#clock.now();
    const startTime = `${new Date(now).toISOString().slice(0, 7)}-01T00:00:00Z`;
    const window = resolveWindow({ startTime, bucketSize: 'month' }, now);
    const totals = await this.#totalsFromRollups(accountId, USAGE_KINDS, 'none', window, now);
    return dollars(totalAmount(totals.flat()));
  }

  /** The cost of all usage ever, in rate times seconds. */
  async lifetime({ accountId }: Caller): Promise<bigint> {
    const now = this.#clock.now();
    const window = resolveWindow({ startTime: '1970-01-01T00:00:00Z', bucketSize: 'year' }, now);
    const totals = await this.#totalsFromRollups(accountId, USAGE_KINDS, 'none', window, now);
    return totalAmount(totals.flat());
  }

  async #totalsFromRollups(
    accountId: string,
    kinds: readonly UsageKind[],
    grouping: BillingGrouping,
    { bucketSize, start, end, buckets }: BillingWindow,
    now: number,
  ): Promise<UsageTotal[][]> {
    const level =
      bucketSize === 'hour' ? 'hour' : bucketSize === 'month' || bucketSize === 'year' ? 'month' : 'day';
    const from = bucketStart(level === 'hour' ? 'day' : 'month', start);
    const rolledUp = grouping === 'resource' ? 'resource' : grouping === 'none' ? 'all' : 'type';
    const rollups = await this.#ledger.rollups({
      accountId,
      kinds,
      grouping: rolledUp,
      level,
      from,
      to: end,
    });
    return rollups.map((rollup) =>
      totalsFromRollups(rollup, buckets, {
        from,
        now: Math.floor(now / 1000),
        ...(grouping === 'gpuType' && { groupOf: gpuOf }),
      }),
    );
  }

  async #totalsFromIntervals(
    accountId: string,
    kind: UsageKind,
    { grouping, filter }: HistoryQuery,
    { start, end, buckets }: BillingWindow,
    now: number,
  ): Promise<UsageTotal[]> {
    const intervals = await this.#ledger.listIntervals({ accountId, kind, from: start, to: end, ...filter });
    return totalsFromIntervals(intervals, buckets, Math.floor(now / 1000), (interval) =>
      groupOf(interval, grouping),
    );
  }
}

export function totalAmount(totals: readonly UsageTotal[]): bigint {
  return totals.reduce(
    (sum, { amounts }) => COST_PARTS.reduce((part, name) => part + amounts[name], sum),
    0n,
  );
}

/** The sum of one cost part. */
export function partAmount(totals: readonly UsageTotal[], part: CostPart): bigint {
  return totals.reduce((sum, { amounts }) => sum + amounts[part], 0n);
}

/** The most frequent queries are answered from roll-ups, the others from intervals. */
function isRolledUp({ grouping, filter = {}, bucketSize }: HistoryQuery): boolean {
  if (Object.keys(filter).length > 0 || grouping === 'unit') return false;
  return grouping !== 'resource' || bucketSize !== 'hour';
}

function groupOf(interval: UsageInterval, grouping: BillingGrouping): string {
  const { resourceId, unitId, gpuTypeId } = interval;
  switch (grouping) {
    case 'resource':
      return resourceId;
    case 'unit':
      return unitId;
    case 'gpuType':
      return gpuTypeId ?? '';
    case 'hardware':
      return hardwareGroup(interval);
    case 'none':
      return '';
  }
}

/**
 * Roll-ups name hardware by kind and name (`gpu X`). Grouped by GPU type, everything without a GPU is one
 * group.
 */
function gpuOf(hardware: string): string {
  return hardware.startsWith('gpu ') ? hardware.slice('gpu '.length) : '';
}

function checkCount(totals: UsageTotal[], grouping: BillingGrouping): UsageTotal[] {
  if (totals.length <= MAX_RECORDS) return totals;
  throw ruleError(
    `that would be ${totals.length} records by ${grouping}, and at most ${MAX_RECORDS} are answered; ` +
      'ask for larger buckets, a shorter time, or a single one of them',
  );
}
