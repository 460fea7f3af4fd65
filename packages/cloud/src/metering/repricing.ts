import { podHourlyCost } from '../domain/hourly-cost.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../support/clock.ts';
import type { UsagePrices } from './usage-rules.ts';

export interface RepricingDeps {
  store: Pick<Store, 'ledger' | 'pods'>;
  prices: UsagePrices;
  clock: Clock;
}

/**
 * Applies new prices from now on: running units begin a new usage interval, and the price that their
 * owners see is the price that they pay. Bids do not change. Unchanged prices cost one read. The very
 * first time, units that run already are counted from their start.
 */
export async function applyPrices({ store, prices, clock }: RepricingDeps): Promise<void> {
  const text = JSON.stringify(prices);
  const before = await store.ledger.savedPrices();
  if (before === text) return;
  const isFirst = before === undefined;
  const { podIds, workerIds, volumeIds } = await store.ledger.listBillableUnits();
  for (const id of podIds)
    await store.pods.reprice(id, (pod) => podHourlyCost(prices, pod), clock.now(), isFirst);
  for (const id of workerIds) await store.ledger.reprice({ kind: 'worker', id }, clock.now(), isFirst);
  for (const id of volumeIds) await store.ledger.reprice({ kind: 'volume', id }, clock.now(), isFirst);
  await store.ledger.savePrices(text);
}
