import type { Registry } from 'prom-client';
import { exposeReadGauges } from './read-gauges.ts';
import type { GaugeFamily } from './read-gauges.ts';

/** So many limits of accounts have series: those of which most is used. */
const MAX_LIMIT_SERIES = 200;

/** One limit and how much of it is used. The account is empty for a limit of the installation. */
export interface LimitUse {
  account: string;
  limit: string;
  used: number;
  maximum: number;
  ratio: number;
}

/** Shows at /metrics how much of the limits that are set is used. */
export function exposeQuotaUse(registry: Registry, read: () => Promise<LimitUse[]>): void {
  const family = (
    name: string,
    help: string,
    valueOf: (use: LimitUse) => number,
  ): GaugeFamily<LimitUse[]> => ({
    name,
    help: `${help}, by account; account "" is the installation`,
    labelNames: ['account', 'limit'],
    valuesIn: (uses) =>
      uses.map((use) => ({ labels: { account: use.account, limit: use.limit }, value: valueOf(use) })),
  });
  exposeReadGauges(registry, async () => mostUsed(await read()), [
    family('berth_quota_used_ratio', 'How much of a limit is used', ({ ratio }) => ratio),
    family('berth_quota_used', 'What is used of a limit, in its unit', ({ used }) => used),
    family('berth_quota_limit', 'The limit, in its unit', ({ maximum }) => maximum),
  ]);
}

function mostUsed(uses: readonly LimitUse[]): LimitUse[] {
  const ofAccounts = uses.filter(({ account }) => account !== '');
  return [
    ...uses.filter(({ account }) => account === ''),
    ...ofAccounts.sort((one, two) => two.ratio - one.ratio).slice(0, MAX_LIMIT_SERIES),
  ];
}
