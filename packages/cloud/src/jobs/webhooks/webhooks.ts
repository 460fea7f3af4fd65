import type { Delivery, DeliveryEntry } from '../../store/job-records.ts';
import type { Clock } from '../../support/clock.ts';
import { notFound } from '../../support/errors.ts';
import { redelivery } from './delivery.ts';
import type { DeliveryStore } from './lease.ts';

export interface WebhooksParts {
  store: DeliveryStore;
  clock: Clock;
  /** Something is due now. */
  onDue(): void;
}

/** The log of webhooks, for whoever owns the endpoint. */
export class Webhooks {
  readonly #parts: WebhooksParts;

  constructor(parts: WebhooksParts) {
    this.#parts = parts;
  }

  /** Newest first. */
  list(endpointId: string, filter: { jobId?: string; limit: number }): Promise<DeliveryEntry[]> {
    return this.#parts.store.deliveries(endpointId, filter);
  }

  /** Sends a delivery once more, under the same id. Answers it as it now stands. */
  async redeliver(endpointId: string, id: string): Promise<Delivery> {
    const { store, clock, onDue } = this.#parts;
    for (;;) {
      const current = await store.findDelivery(endpointId, id);
      if (current === undefined) throw notFound('webhook delivery', id);
      const next = redelivery(current, clock.now());
      // Where it has changed since, or is gone, it is looked at again.
      if (next !== current && !(await store.changeDelivery(current, next))) continue;
      onDue();
      return next;
    }
  }
}
