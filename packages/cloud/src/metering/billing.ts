import type { Caller } from '../resources/caller.ts';
import type { CostPart, LedgerStore, Stretch, StretchQuery, UsageKind } from '../store/ledger.ts';
import { PARTS, typeOf, USAGE_KINDS } from '../store/ledger.ts';
import type { Clock } from '../support/clock.ts';
import { rule } from '../support/errors.ts';
import { bucketStart } from './buckets.ts';
import { dollarsPerHour } from './money.ts';
import { tallyStretches, tallySums } from './tally.ts';
import type { Tally } from './tally.ts';
import { resolveWindow } from './window.ts';
import type { Window, WindowWish } from './window.ts';

/** More would not be read by anybody, and would take the server's memory. */
export const MOST_RECORDS = 200_000;

/** By what usage is told apart: what its owner knows it by, what runs, its GPU type, or hardware of any kind (`gpu X`, `cpu X`, a tier of volumes). */
export type BillingGrouping = 'resource' | 'unit' | 'gpuType' | 'hardware' | 'none';

export interface HistoryWish extends WindowWish {
  grouping: BillingGrouping;
  filter?: Omit<StretchQuery, 'accountId' | 'kind' | 'from' | 'to'>;
}

export interface History {
  window: Window;
  /** By time, and then by group. Buckets in which nothing was used have none. */
  tallies: Tally[];
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
  window(wish: WindowWish): Window {
    return resolveWindow(wish, this.#clock.now());
  }

  async history({ accountId }: Caller, kind: UsageKind, wish: HistoryWish): Promise<History> {
    const now = this.#clock.now();
    const window = resolveWindow(wish, now);
    const tallies = isRolledUp(wish)
      ? await this.#fromSums(accountId, [kind], wish.grouping, window, now)
      : [await this.#fromStretches(accountId, kind, wish, window, now)];
    return { window, tallies: checkCount(tallies[0] ?? [], wish.grouping) };
  }

  /** Every kind at once. */
  async summary(
    { accountId }: Caller,
    wish: WindowWish,
  ): Promise<{ window: Window; byKind: Record<UsageKind, Tally[]> }> {
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
    for (const { kind, rates } of await this.#ledger.current(accountId)) {
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
    return total(tallies.flat());
  }

  async #fromSums(
    accountId: string,
    kinds: readonly UsageKind[],
    grouping: BillingGrouping,
    { bucketSize, start, end, buckets }: Window,
    now: number,
  ): Promise<Tally[][]> {
    const level =
      bucketSize === 'hour' ? 'hour' : bucketSize === 'month' || bucketSize === 'year' ? 'month' : 'day';
    const from = bucketStart(level === 'hour' ? 'day' : 'month', start);
    const rolledUp = grouping === 'resource' ? 'resource' : grouping === 'none' ? 'all' : 'type';
    const sums = await this.#ledger.sums({ accountId, kinds, grouping: rolledUp, level, from, to: end });
    return sums.map((one) =>
      tallySums(one, buckets, {
        from,
        now: Math.floor(now / 1000),
        ...(grouping === 'gpuType' && { groupOf: gpuOf }),
      }),
    );
  }

  async #fromStretches(
    accountId: string,
    kind: UsageKind,
    { grouping, filter }: HistoryWish,
    { start, end, buckets }: Window,
    now: number,
  ): Promise<Tally[]> {
    const stretches = await this.#ledger.stretches({ accountId, kind, from: start, to: end, ...filter });
    return tallyStretches(stretches, buckets, Math.floor(now / 1000), (stretch) =>
      groupOf(stretch, grouping),
    );
  }
}

export function total(tallies: readonly Tally[]): bigint {
  return tallies.reduce((sum, { amounts }) => PARTS.reduce((part, name) => part + amounts[name], sum), 0n);
}

/** The sum of one part over some tallies. */
export function sumOf(tallies: readonly Tally[], part: CostPart): bigint {
  return tallies.reduce((sum, { amounts }) => sum + amounts[part], 0n);
}

/** What is asked for most is kept ready; the rest is counted from the stretches. */
function isRolledUp({ grouping, filter = {}, bucketSize }: HistoryWish): boolean {
  if (Object.keys(filter).length > 0 || grouping === 'unit') return false;
  return grouping !== 'resource' || bucketSize !== 'hour';
}

function groupOf(stretch: Stretch, grouping: BillingGrouping): string {
  const { resourceId, unitId, gpuTypeId } = stretch;
  switch (grouping) {
    case 'resource':
      return resourceId;
    case 'unit':
      return unitId;
    case 'gpuType':
      return gpuTypeId ?? '';
    case 'hardware':
      return typeOf(stretch);
    case 'none':
      return '';
  }
}

/** Hardware is rolled up with its kind before its name; whoever asks for GPUs has all that runs without one together. */
function gpuOf(hardware: string): string {
  return hardware.startsWith('gpu ') ? hardware.slice('gpu '.length) : '';
}

function checkCount(tallies: Tally[], grouping: BillingGrouping): Tally[] {
  if (tallies.length <= MOST_RECORDS) return tallies;
  throw rule(
    `that would be ${tallies.length} records by ${grouping}, and at most ${MOST_RECORDS} are answered; ask for larger buckets, a shorter time, or a single one of them`,
  );
}
