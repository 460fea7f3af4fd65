import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { DATABASES } from '../../../../../tests/support/databases.ts';
import { migratedDatabase } from '../../../../../tests/support/migrated-database.ts';
import type { MigratedDatabase } from '../../../../../tests/support/migrated-database.ts';
import type { Delivery } from '../../store/job-records.ts';
import type { JobStore } from '../../store/jobs.ts';
import { ManualClock, systemClock } from '../../support/clock.ts';
import type { Clock } from '../../support/clock.ts';
import { randomIds } from '../../support/ids.ts';
import type { DeliveryStore } from './lease.ts';
import type { SenderOptions } from './options.ts';
import { WebhookSender } from './sender.ts';
import type { SenderParts } from './sender.ts';
import { NOW, OPTIONS, Receiver, WatchedStore, log, secretOf } from './test-bench.ts';
import type { Received } from './test-bench.ts';

for (const kind of DATABASES) {
  describe(`webhooks on ${kind}`, { timeout: 60_000 }, () => {
    let place: MigratedDatabase;
    let jobs: JobStore;
    let endpointId = '';
    let toClose: { close(): Promise<void> | void }[] = [];

    before(async () => {
      place = await migratedDatabase(kind);
      jobs = place.database.jobs();
    });
    afterEach(async () => {
      for (const thing of toClose) await thing.close();
      toClose = [];
      await jobs.removeEndpoint(endpointId);
    });
    after(() => place.drop());

    function closing<T extends { close(): Promise<void> | void }>(thing: T): T {
      toClose.unshift(thing);
      return thing;
    }

    async function receiver(answer?: (received: Received, count: number) => void): Promise<Receiver> {
      return closing(await new Receiver(answer).listen());
    }

    function watched(): WatchedStore {
      endpointId = randomIds.resource();
      return new WatchedStore(jobs);
    }

    function sender(store: DeliveryStore, clock: Clock, options: Partial<SenderOptions> = {}, more: Partial<SenderParts> = {}): WebhookSender {
      return closing(new WebhookSender({ store, clock, log, secretOf, options: { ...OPTIONS, closeGrace: 0, ...options }, ...more }));
    }

    async function due(url: string, now = NOW): Promise<Delivery> {
      const delivery: Delivery = {
        id: randomIds.resource(), endpointId, accountId: 'a1', jobId: 'j1', url, body: '{"id":"j1","output":1.0,"input":"ü"}', attempts: 0, nextAt: now, state: 'pending', lastStatus: null, lastError: null, createdAt: now, updatedAt: now,
      };
      await jobs.saveDelivery(delivery);
      return delivery;
    }

    test('the lease is on disk before anything is sent', async () => {
      const store = watched();
      let leasedUntil: number | null | undefined;
      const hook = await receiver(({ answer }) => {
        leasedUntil = store.saved.at(-1)?.nextAt;
        answer(200);
      });
      const delivery = await due(hook.url);
      sender(store, new ManualClock(NOW)).start();
      await store.whenDelivered(delivery.id);
      assert.ok((leasedUntil ?? 0) >= NOW + OPTIONS.timeout);
    });

    test('what a server left in the middle is delivered by another, and the first one has no say any more', async () => {
      const [store, clock, hook] = [watched(), new ManualClock(NOW), await receiver(({ answer }, count) => void (count > 1 && answer(200)))];
      const delivery = await due(hook.url);
      sender(store, clock).start();
      await hook.has(1);
      const second = sender(store, clock);
      second.start();
      // While the lease lasts nobody else sends it.
      clock.advance(OPTIONS.timeout);
      const other = await due(hook.url, clock.now());
      second.poke();
      await store.whenDelivered(other.id);
      assert.equal(hook.received.length, 2);
      clock.advance(6_001);
      second.poke();
      const delivered = await store.whenDelivered(delivery.id);
      assert.equal(delivered.attempts, 1);
      const [stuck = assert.fail()] = hook.received;
      stuck.answer(500);
      for (const thing of toClose.splice(0)) await thing.close();
      assert.deepEqual(await jobs.findDelivery(endpointId, delivery.id), delivered);
    });

    test('what is on its way when the server stops is due at once at the next start, and does not count', async () => {
      const [store, clock, hook] = [watched(), new ManualClock(NOW), await receiver(({ answer }, count) => void (count > 1 && answer(200)))];
      const delivery = await due(hook.url);
      const first = sender(store, clock);
      first.start();
      await hook.has(1);
      await first.close();
      assert.deepEqual(await jobs.findDelivery(endpointId, delivery.id), delivery);
      sender(store, clock).start();
      assert.equal((await store.whenDelivered(delivery.id)).attempts, 1);
    });

    test('what came of an attempt is written down when the store is back', async () => {
      const [store, hook] = [watched(), await receiver()];
      const delivery = await due(hook.url);
      let failures = 2;
      store.beforeSave = ({ state }) => {
        if (state === 'delivered' && failures-- > 0) throw new Error('the store is away');
      };
      sender(store, new ManualClock(NOW)).start();
      assert.equal((await store.whenDelivered(delivery.id)).attempts, 1);
      assert.equal(hook.received.length, 1);
    });

    test('nothing is sent without a lease, and it is tried again', async () => {
      const [store, hook] = [watched(), await receiver()];
      const delivery = await due(hook.url, Date.now());
      let failures = 1;
      store.beforeSave = () => {
        assert.equal(hook.connections, 0);
        if (failures-- > 0) throw new Error('the store is away');
      };
      sender(store, systemClock).start();
      await store.when(delivery.id, () => true);
      store.beforeSave = () => undefined;
      await store.whenDelivered(delivery.id);
      assert.equal(hook.received.length, 1);
    });

    test('the webhook of an endpoint that is removed meanwhile does not come back', async () => {
      const [store, hook] = [watched(), await receiver(() => undefined)];
      const delivery = await due(hook.url);
      const hooks = sender(store, new ManualClock(NOW), { closeGrace: 10_000 });
      hooks.start();
      await hook.has(1);
      await jobs.removeEndpoint(endpointId);
      hook.received[0]?.answer(200);
      await hooks.close();
      assert.equal(await jobs.findDelivery(endpointId, delivery.id), undefined);
    });

    test('two servers on one store deliver everything between them', async () => {
      const [store, clock, hook] = [watched(), new ManualClock(NOW), await receiver()];
      const all = await Promise.all(Array.from({ length: 100 }, () => due(hook.url)));
      const senders = [sender(store, clock), sender(store, clock)];
      for (const one of senders) one.start();
      await Promise.all(all.map(({ id }) => store.whenDelivered(id)));
      assert.equal(new Set(hook.attempts().map(([id]) => id)).size, all.length);
    });
  });
}
