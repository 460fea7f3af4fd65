import type { Caller } from '../domain/caller.ts';
import type { LedgerStore } from '../store/ledger-store.ts';
import type { Clock } from '../support/clock.ts';
import { ruleError } from '../support/errors.ts';
import { bucketStart } from '../domain/time-buckets.ts';
import { dollarsPerHour } from '../domain/money.ts';
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

/** More would not be read by anybody, and would take the server's memory. */
export const MAX_RECORDS = 200_000;

/** By what usage is told apart: what its owner knows it by, what runs, its GPU type, or hardware of any kind (`gpu X`, `cpu X`, a tier of volumes). */
export type BillingGrouping = 'resource' | 'unit' | 'gpuType' | 'hardware' | 'none';

export interface HistoryQuery extends WindowQuery {
  grouping: BillingGrouping;
  filter?: Omit<UsageIntervalQuery, 'accountId' | 'kind' | 'from' | 'to'>;
}

export interface History {
  window: BillingWindow;
  /** By time, and then by group. Buckets in which nothing was used have none. */
  totals: UsageTotal[];
}

/** What an account used and what that cost: the history, and what it is at this moment. */
export class Billing {
  readonly #ledger: LedgerStore;
  readonly #clock: Clock;

  constructor(ledger: LedgerStore, clock: Clock) {
    this.#ledger = ledger;
    this.#clock = clock;
  }

  /** What a wish for a part of the history means at this moment. */
  window(wish: WindowQuery): BillingWindow {
    return resolveWindow(wish, this.#clock.now());
  }

  async history({ accountId }: Caller, kind: UsageKind, wish: HistoryQuery): Promise<History> {
    const now = this.#clock.now();
    const window = resolveWindow(wish, now);
    const tallies = isRolledUp(wish)
      ? await this.#fromSums(accountId, [kind], wish.grouping, window, now)
      : [await this.#fromStretches(accountId, kind, wish, window, now)];
    return { window, totals: checkCount(tallies[0] ?? [], wish.grouping) };
  }

  /** Every kind at once. */
  async summary(
    { accountId }: Caller,
    wish: WindowQuery,
  ): Promise<{ window: BillingWindow; byKind: Record<UsageKind, UsageTotal[]> }> {
    const now = this.#clock.now();
    const window = resolveWindow(wish, now);
    const [pod = [], serverless = [], volume = [], cluster = []] = await this.#fromSums(
      accountId,
      USAGE_KINDS,
      'none',
      window,
      now,
    );
    return { window, byKind: { pod, serverless, volume, cluster } };
  }

  /** US dollars an hour, as it is now. */
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

  /** All that was ever used, in rate times seconds. */
  async lifetime({ accountId }: Caller): Promise<bigint> {
    const now = this.#clock.now();
    const window = resolveWindow({ startTime: '1970-01-01T00:00:00Z', bucketSize: 'year' }, now);
    const tallies = await this.#fromSums(accountId, USAGE_KINDS, 'none', window, now);
    return totalAmount(tallies.flat());
  }

  async #fromSums(
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
    const sums = await this.#ledger.rollups({ accountId, kinds, grouping: rolledUp, level, from, to: end });
    return sums.map((one) =>
      totalsFromRollups(one, buckets, {
        from,
        now: Math.floor(now / 1000),
        ...(grouping === 'gpuType' && { groupOf: gpuOf }),
      }),
    );
  }

  async #fromStretches(
    accountId: string,
    kind: UsageKind,
    { grouping, filter }: HistoryQuery,
    { start, end, buckets }: BillingWindow,
    now: number,
  ): Promise<UsageTotal[]> {
    const stretches = await this.#ledger.listIntervals({ accountId, kind, from: start, to: end, ...filter });
    return totalsFromIntervals(stretches, buckets, Math.floor(now / 1000), (stretch) =>
      groupOf(stretch, grouping),
    );
  }
}

export function totalAmount(tallies: readonly UsageTotal[]): bigint {
  return tallies.reduce(
    (sum, { amounts }) => COST_PARTS.reduce((part, name) => part + amounts[name], sum),
    0n,
  );
}

/** The sum of one part over some tallies. */
export function partAmount(tallies: readonly UsageTotal[], part: CostPart): bigint {
  return tallies.reduce((sum, { amounts }) => sum + amounts[part], 0n);
}

/** What is asked for most is kept ready; the rest is counted from the stretches. */
function isRolledUp({ grouping, filter = {}, bucketSize }: HistoryQuery): boolean {
  if (Object.keys(filter).length > 0 || grouping === 'unit') return false;
  return grouping !== 'resource' || bucketSize !== 'hour';
}

function groupOf(stretch: UsageInterval, grouping: BillingGrouping): string {
  const { resourceId, unitId, gpuTypeId } = stretch;
  switch (grouping) {
    case 'resource':
      return resourceId;
    case 'unit':
      return unitId;
    case 'gpuType':
      return gpuTypeId ?? '';
    case 'hardware':
      return hardwareGroup(stretch);
    case 'none':
      return '';
  }
}

/** Hardware is rolled up with its kind before its name; whoever asks for GPUs has all that runs without one together. */
function gpuOf(hardware: string): string {
  return hardware.startsWith('gpu ') ? hardware.slice('gpu '.length) : '';
}

function checkCount(tallies: UsageTotal[], grouping: BillingGrouping): UsageTotal[] {
  if (tallies.length <= MAX_RECORDS) return tallies;
  throw ruleError(
    `that would be ${tallies.length} records by ${grouping}, and at most ${MAX_RECORDS} are answered; ask for larger buckets, a shorter time, or a single one of them`,
  );
}
