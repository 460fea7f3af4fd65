import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DATABASES } from '../../../../testing/src/test-database.ts';
import { ManualClock, systemClock } from '../../support/clock.ts';
import { NOW, OPTIONS, WebhookFixture } from './webhook-sender.fixture.ts';

for (const kind of DATABASES) {
  describe(`webhooks on ${kind}`, { timeout: 60_000 }, () => {
    const bench = new WebhookFixture(kind);

    test('the lease is stored before anything is sent', async () => {
      const store = bench.recordingStore();
      let leasedUntil: number | null | undefined;
      const hook = await bench.receiver(({ answer }) => {
        leasedUntil = store.saved.at(-1)?.nextAt;
        answer(200);
      });
      const delivery = await bench.createDueDelivery(hook.url);
      bench.sender(store, new ManualClock(NOW)).start();
      await store.whenDelivered(delivery.id);
      assert.ok((leasedUntil ?? 0) >= NOW + OPTIONS.timeout);
    });

    test('a delivery that a server abandoned is sent by another, and the first can no longer change it', async () => {
      const [store, clock, hook] = [
        bench.recordingStore(),
        new ManualClock(NOW),
        await bench.receiver(({ answer }, count) => void (count > 1 && answer(200))),
      ];
      const delivery = await bench.createDueDelivery(hook.url);
      bench.sender(store, clock).start();
      await hook.has(1);
      const second = bench.sender(store, clock);
      second.start();
      // While the lease lasts nobody else sends it.
      clock.advance(OPTIONS.timeout);
      const other = await bench.createDueDelivery(hook.url, clock.now());
      second.wake();
      await store.whenDelivered(other.id);
      assert.equal(hook.received.length, 2);
      clock.advance(6_001);
      second.wake();
      const delivered = await store.whenDelivered(delivery.id);
      assert.equal(delivered.attempts, 1);
      const [stuck = assert.fail()] = hook.received;
      stuck.answer(500);
      await bench.closeAll();
      assert.deepEqual(await bench.jobs.findDelivery(bench.endpointId, delivery.id), delivered);
    });

    test('an attempt in progress when the server stops is due at the next start, and does not count', async () => {
      const [store, clock, hook] = [
        bench.recordingStore(),
        new ManualClock(NOW),
        await bench.receiver(({ answer }, count) => void (count > 1 && answer(200))),
      ];
      const delivery = await bench.createDueDelivery(hook.url);
      const first = bench.sender(store, clock);
      first.start();
      await hook.has(1);
      await first.close();
      assert.deepEqual(await bench.jobs.findDelivery(bench.endpointId, delivery.id), delivery);
      bench.sender(store, clock).start();
      assert.equal((await store.whenDelivered(delivery.id)).attempts, 1);
    });

    test('the outcome of an attempt is stored when the store is back', async () => {
      const [store, hook] = [bench.recordingStore(), await bench.receiver()];
      const delivery = await bench.createDueDelivery(hook.url);
      let failures = 2;
      store.beforeSave = ({ state }) => {
        if (state === 'delivered' && failures-- > 0) throw new Error('the store is away');
      };
      bench.sender(store, new ManualClock(NOW)).start();
      assert.equal((await store.whenDelivered(delivery.id)).attempts, 1);
      assert.equal(hook.received.length, 1);
    });

    test('nothing is sent without a lease, and the lease is retried', async () => {
      const [store, hook] = [bench.recordingStore(), await bench.receiver()];
      const delivery = await bench.createDueDelivery(hook.url, Date.now());
      let failures = 1;
      store.beforeSave = () => {
        assert.equal(hook.connections, 0);
        if (failures-- > 0) throw new Error('the store is away');
      };
      bench.sender(store, systemClock).start();
      await store.when(delivery.id, () => true);
      store.beforeSave = () => undefined;
      await store.whenDelivered(delivery.id);
      assert.equal(hook.received.length, 1);
    });

    test('the webhook of an endpoint that is deleted meanwhile does not come back', async () => {
      const [store, hook] = [bench.recordingStore(), await bench.receiver(() => undefined)];
      const delivery = await bench.createDueDelivery(hook.url);
      const hooks = bench.sender(store, new ManualClock(NOW), { closeGrace: 10_000 });
      hooks.start();
      await hook.has(1);
      await bench.jobs.removeEndpoint(bench.endpointId);
      hook.received[0]?.answer(200);
      await hooks.close();
      assert.equal(await bench.jobs.findDelivery(bench.endpointId, delivery.id), undefined);
    });

    test('two servers on one store deliver everything between them', async () => {
      const [store, clock, hook] = [bench.recordingStore(), new ManualClock(NOW), await bench.receiver()];
      const all = await Promise.all(Array.from({ length: 100 }, () => bench.createDueDelivery(hook.url)));
      const senders = [bench.sender(store, clock), bench.sender(store, clock)];
      for (const one of senders) one.start();
      await Promise.all(all.map(({ id }) => store.whenDelivered(id)));
      assert.equal(new Set(hook.attempts().map(([id]) => id)).size, all.length);
    });
  });
}
