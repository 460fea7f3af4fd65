import type { Delivery, DeliveryEntry } from '../../domain/job-records.ts';
import type { CloudEventBus } from '../../domain/events.ts';
import type { Clock } from '../../support/clock.ts';
import { notFound } from '../../support/errors.ts';
import { redelivery } from './webhook-delivery.ts';
import type { DeliveryStore } from './delivery-lease.ts';

export interface WebhookDeliveriesDeps {
  store: DeliveryStore;
  clock: Clock;
  events: CloudEventBus;
}

/** The webhook log, for the owner of the endpoint. */
export class WebhookDeliveries {
  readonly #deps: WebhookDeliveriesDeps;

  constructor(deps: WebhookDeliveriesDeps) {
    this.#deps = deps;
  }

  /** Newest first. */
  list(endpointId: string, filter: { jobId?: string; limit: number }): Promise<DeliveryEntry[]> {
    return this.#deps.store.listDeliveries(endpointId, filter);
  }

  /** Redelivers under the same id. Returns the updated delivery. */
  async redeliver(endpointId: string, id: string): Promise<Delivery> {
    const { store, clock, events } = this.#deps;
    for (;;) {
      const current = await store.findDelivery(endpointId, id);
      if (current === undefined) throw notFound('webhook delivery', id);
      const next = redelivery(current, clock.now());
      // Where it has changed since, or is gone, it is read again.
      if (next !== current && !(await store.updateDelivery(current, next))) continue;
      events.publish('webhook.due', { endpointId });
      return next;
    }
  }
}
