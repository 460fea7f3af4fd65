import { hourlyCost } from '../resources/pods/cost.ts';
import type { UseChange } from '../store/ledger.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../support/clock.ts';
import { podUse, volumeUse, workerUse } from './usage-rules.ts';
import type { UsagePrices } from './usage-rules.ts';

export interface RepricingParts {
  store: Pick<Store, 'ledger' | 'pods'>;
  prices: UsagePrices;
  clock: Clock;
}

/**
 * New prices hold from the moment that Berth runs with them: what goes on begins a new stretch then.
 * Prices that are as before cost one read. The first time of all, what runs already is counted from
 * its start.
 */
export async function applyPrices({ store, prices, clock }: RepricingParts): Promise<void> {
  const text = JSON.stringify(prices);
  const before = await store.ledger.prices();
  if (before === text) return;
  const { podIds, workers, volumes } = await store.ledger.units();
  for (const id of podIds) await repricePod(id, { store, prices, clock }, before === undefined);
  const now = clock.now();
  const changes: UseChange[] = [
    ...workers.filter(({ startedAt }) => startedAt !== null).map((worker) => ({ unitId: worker.id, use: workerUse(worker, prices), at: before === undefined ? (worker.startedAt ?? now) : now })),
    ...volumes.map((volume) => ({ unitId: volume.id, use: volumeUse(volume, prices.disk), at: now })),
  ];
  for (const change of changes) await store.ledger.settle([change]);
  await store.ledger.notePrices(text);
}

/** What its owner is shown as its price is what it pays. A bid is a price that was agreed. */
async function repricePod(id: string, { store, prices, clock }: RepricingParts, isFirst: boolean): Promise<void> {
  const pod = await store.pods.observe(id, (current) => {
    const costPerHour = hourlyCost(prices, current);
    return costPerHour === current.costPerHour ? undefined : { ...current, costPerHour, updatedAt: clock.now() };
  });
  if (pod === undefined) return;
  const runs = pod.startedAt !== null && pod.endedAt === null;
  // Disks may cost something else, too.
  await store.ledger.settle([{ unitId: id, use: podUse(pod, prices.disk), at: isFirst && runs ? (pod.startedAt ?? clock.now()) : clock.now() }]);
}
