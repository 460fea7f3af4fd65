import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { DATABASES } from '../../../../testing/src/test-database.ts';
import { createMigratedDatabase } from '../../../../testing/src/migrated-database.ts';
import type { MigratedDatabase } from '../../../../testing/src/migrated-database.ts';
import type { Delivery } from '../../domain/job-records.ts';
import type { JobStore } from '../../store/job-store.ts';
import { ManualClock } from '../../support/clock.ts';
import { BerthError } from '../../support/errors.ts';
import { WebhookDeliveries } from './webhook-deliveries.ts';
import type { CloudEventBus } from '../../domain/events.ts';
import { EventBus } from '../../support/event-bus.ts';

const delivery = (id: string, change: Partial<Delivery> = {}): Delivery => ({
  id,
  endpointId: 'e1',
  accountId: 'a1',
  jobId: 'j1',
  url: 'https://hooks.example/',
  body: '{}',
  attempts: 1,
  nextAt: null,
  state: 'delivered',
  lastStatus: 200,
  lastError: null,
  createdAt: 1,
  updatedAt: 1,
  ...change,
});

for (const kind of DATABASES) {
  describe(`the log of webhooks on ${kind}`, () => {
    const clock = new ManualClock(50);
    let migrated: MigratedDatabase;
    let store: JobStore;
    let webhooks: WebhookDeliveries;
    const events: CloudEventBus = new EventBus();
    let due = 0;
    events.subscribe('webhook.due', () => (due += 1));

    before(async () => {
      migrated = await createMigratedDatabase(kind);
      store = migrated.database.jobs();
      webhooks = new WebhookDeliveries({ store, clock, events });
      for (const each of [
        delivery('d1'),
        delivery('d2', { jobId: 'j2', createdAt: 2, state: 'failed', lastStatus: 500, lastError: 'no' }),
        delivery('d3', { createdAt: 3, state: 'pending', nextAt: 99 }),
        delivery('d4', { endpointId: 'e2' }),
      ])
        await store.saveDelivery(each);
    });
    after(() => migrated.drop());

    test('lists an endpoint or a job, the newest first', async () => {
      const ids = async (filter: { jobId?: string; limit: number }): Promise<string[]> =>
        (await webhooks.list('e1', filter)).map(({ id }) => id);
      assert.deepEqual(await ids({ limit: 10 }), ['d3', 'd2', 'd1']);
      assert.deepEqual(await ids({ limit: 2 }), ['d3', 'd2']);
      assert.deepEqual(await ids({ limit: 10, jobId: 'j1' }), ['d3', 'd1']);
      assert.deepEqual(await ids({ limit: 10, jobId: 'none' }), []);
    });

    test('redelivers what was delivered or has failed', async () => {
      for (const [id, attempts] of [
        ['d1', 1],
        ['d2', 1],
      ] as const) {
        const { body: _, ...entry } = await webhooks.redeliver('e1', id);
        assert.deepEqual(
          [entry.id, entry.state, entry.nextAt, entry.attempts],
          [id, 'pending', 50, attempts],
        );
        assert.deepEqual(
          (await webhooks.list('e1', { limit: 10 })).find((each) => each.id === id),
          entry,
        );
      }
      assert.equal(due, 2);
    });

    test('does not redeliver a pending delivery', async () => {
      assert.equal((await webhooks.redeliver('e1', 'd3')).nextAt, 99);
    });

    describe('where a delivery changes while it is being redelivered', () => {
      /** The same log for a slower caller: after the first read, something else happens. */
      const overtaken = (meanwhile: () => Promise<unknown>): WebhookDeliveries => {
        let looks = 0;
        const findDelivery = async (endpointId: string, id: string): Promise<Delivery | undefined> => {
          const found = await store.findDelivery(endpointId, id);
          looks += 1;
          if (looks === 1) await meanwhile();
          return found;
        };
        return new WebhookDeliveries({ store: { ...store, findDelivery }, clock, events: new EventBus() });
      };

      test('it is sent under the next number, if it has been sent', async () => {
        await store.saveDelivery(delivery('d5', { endpointId: 'e3' }));
        const slower = overtaken(async () => {
          const sent = await webhooks.redeliver('e3', 'd5');
          await store.saveDelivery({
            ...sent,
            attempts: 4,
            state: 'delivered',
            nextAt: null,
            lastStatus: 200,
          });
        });
        const { attempts, state } = await slower.redeliver('e3', 'd5');
        assert.deepEqual([attempts, state], [4, 'pending']);
        assert.equal((await store.findDelivery('e3', 'd5'))?.attempts, 4);
      });

      test('it is left alone, if it is pending', async () => {
        await store.saveDelivery(delivery('d6', { endpointId: 'e3' }));
        const slower = overtaken(async () =>
          store.saveDelivery({ ...(await webhooks.redeliver('e3', 'd6')), nextAt: 99 }),
        );
        assert.equal((await slower.redeliver('e3', 'd6')).nextAt, 99);
        assert.equal((await store.findDelivery('e3', 'd6'))?.nextAt, 99);
      });

      test('it is not found, if it was deleted with its endpoint', async () => {
        await store.saveDelivery(delivery('d7', { endpointId: 'e4' }));
        await assert.rejects(
          overtaken(() => store.removeEndpoint('e4')).redeliver('e4', 'd7'),
          (error: unknown) => error instanceof BerthError && error.code === 'not-found',
        );
        assert.equal(await store.findDelivery('e4', 'd7'), undefined);
      });
    });

    test('does not find deliveries of another endpoint', async () => {
      for (const id of ['d4', 'nothing'])
        await assert.rejects(
          webhooks.redeliver('e1', id),
          (error: unknown) => error instanceof BerthError && error.code === 'not-found',
        );
    });
  });
}
