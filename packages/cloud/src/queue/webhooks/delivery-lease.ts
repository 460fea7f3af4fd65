import type { Delivery } from '../../domain/job-records.ts';
import type { JobStore } from '../../store/job-store.ts';

export type DeliveryStore = Pick<
  JobStore,
  | 'listDueDeliveries'
  | 'saveDelivery'
  | 'updateDelivery'
  | 'listDeliveries'
  | 'findDelivery'
  | 'deleteEndedDeliveries'
>;

/**
 * Leases that two servers take in the same millisecond still end at different times, so each server
 * recognizes its own.
 */
const LEASE_JITTER_MS = 1_000;

/**
 * A **lease** keeps other servers off a delivery while one works on it. It is the time of the next attempt,
 * moved into the future before anything is sent: if this server dies, the delivery becomes due again by
 * itself. Undefined where another server was faster.
 */
export async function leaseDelivery(
  store: DeliveryStore,
  delivery: Delivery,
  now: number,
  milliseconds: number,
): Promise<LeasedDelivery | undefined> {
  const nextAt = now + milliseconds + Math.floor(Math.random() * LEASE_JITTER_MS);
  const leased = { ...delivery, nextAt };
  return (await store.updateDelivery(delivery, leased)) ? leased : undefined;
}

export type LeasedDelivery = Delivery & { nextAt: number };

/** The delivery, if the lease that ends at `nextAt` is still ours. */
export async function findLeased(
  store: DeliveryStore,
  { endpointId, id, nextAt }: Pick<LeasedDelivery, 'endpointId' | 'id' | 'nextAt'>,
): Promise<LeasedDelivery | undefined> {
  const current = await store.findDelivery(endpointId, id);
  return current?.nextAt === nextAt && current.state === 'pending' ? { ...current, nextAt } : undefined;
}

/** Stores the outcome of a leased delivery, unless the lease was lost: then another server reports it. */
export function commitAttempt(
  store: DeliveryStore,
  leased: LeasedDelivery,
  next: Delivery,
): Promise<boolean> {
  return store.updateDelivery(leased, next);
}
