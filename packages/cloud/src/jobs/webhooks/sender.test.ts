import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { DATABASES } from '../../../../../tests/support/databases.ts';
import { migratedDatabase } from '../../../../../tests/support/migrated-database.ts';
import type { MigratedDatabase } from '../../../../../tests/support/migrated-database.ts';
import type { Delivery, Job } from '../../store/job-records.ts';
import type { JobStore } from '../../store/jobs.ts';
import { noWakeups } from '../../store/wakeups.ts';
import { ManualClock, systemClock } from '../../support/clock.ts';
import type { Clock } from '../../support/clock.ts';
import { randomIds } from '../../support/ids.ts';
import { seqOf } from '../identity.ts';
import { JobQueue } from '../queue.ts';
import { deliveryOf } from './delivery.ts';
import type { DeliveryStore } from './lease.ts';
import type { SenderOptions } from './options.ts';
import { WebhookSender } from './sender.ts';
import type { SenderParts } from './sender.ts';
import { sign } from './signature.ts';
import { NOW, OPTIONS, Receiver, WatchedStore, log, secretOf } from './test-bench.ts';
import type { Received } from './test-bench.ts';
import { Webhooks } from './webhooks.ts';

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

    test('delivers at once, signed, with its id and attempt', async () => {
      const [store, clock, hook] = [watched(), new ManualClock(NOW), await receiver()];
      const delivery = await due(hook.url);
      sender(store, clock).start();
      assert.deepEqual(await store.whenDelivered(delivery.id), { ...delivery, attempts: 1, nextAt: null, state: 'delivered', lastStatus: 200 });
      const [{ headers, body, path } = assert.fail()] = hook.received;
      assert.equal(path, '/hook');
      assert.equal(body, delivery.body);
      assert.equal(headers['content-type'], 'application/json');
      assert.equal(headers['user-agent'], 'Berth-Webhook/1');
      assert.equal(headers['x-berth-signature'], sign(secretOf('a1'), body));
      assert.equal(headers['x-berth-delivery'], delivery.id);
      assert.equal(headers['x-berth-attempt'], '1');
      assert.deepEqual(await jobs.findDelivery(endpointId, delivery.id), { ...delivery, attempts: 1, nextAt: null, state: 'delivered', lastStatus: 200 });
    });

    test('a failed attempt is made again after the pause, not before, under the same id', async () => {
      const [store, clock, hook] = [watched(), new ManualClock(NOW), await receiver(({ answer }, count) => answer(count === 1 ? 500 : 200))];
      const hooks = sender(store, clock);
      hooks.start();
      const delivery = await due(hook.url);
      hooks.poke();
      const failed = await store.whenTried(delivery.id, 1);
      assert.deepEqual([failed.state, failed.nextAt, failed.lastStatus, failed.lastError], ['pending', NOW + 10_000, 500, 'the receiver answered 500']);
      clock.advance(9_999);
      const other = await due(hook.url, clock.now());
      hooks.poke();
      await store.whenDelivered(other.id);
      assert.equal(hook.received.length, 2);
      clock.advance(1);
      hooks.poke();
      const delivered = await store.whenDelivered(delivery.id);
      assert.deepEqual([delivered.attempts, delivered.lastStatus, delivered.lastError], [2, 200, null]);
      assert.deepEqual(hook.attempts(), [[delivery.id, '1'], [other.id, '1'], [delivery.id, '2']]);
    });

    test('after three attempts it has failed; by hand it goes out again, and the attempts count on', async () => {
      let status = 503;
      const [store, clock, hook] = [watched(), new ManualClock(NOW), await receiver(({ answer }) => answer(status))];
      const hooks = sender(store, clock);
      const webhooks = new Webhooks({ store, clock, onDue: () => hooks.poke() });
      const delivery = await due(hook.url);
      hooks.start();
      for (const attempt of [1, 2]) {
        await store.whenTried(delivery.id, attempt);
        clock.advance(10_000);
        hooks.poke();
      }
      const failed = await store.when(delivery.id, ({ state }) => state === 'failed');
      assert.deepEqual([failed.attempts, failed.nextAt, failed.lastError], [3, null, 'the receiver answered 503']);
      status = 202;
      assert.equal((await webhooks.redeliver(endpointId, delivery.id)).state, 'pending');
      assert.equal((await store.whenDelivered(delivery.id)).attempts, 4);
      // One that was delivered at its first attempt has a whole series again: 7, 8 and 9.
      assert.equal((await webhooks.redeliver(endpointId, delivery.id)).attempts, 4);
      status = 500;
      for (const attempt of [7, 8]) {
        await store.whenTried(delivery.id, attempt);
        clock.advance(10_000);
        hooks.poke();
      }
      await store.when(delivery.id, ({ state, attempts }) => state === 'failed' && attempts === 9);
      assert.deepEqual(hook.attempts(), ['1', '2', '3', '4', '7', '8', '9'].map((attempt) => [delivery.id, attempt]));
      await hooks.close();
      assert.deepEqual(hooks.counts, { attempts: 7, delivered: 1, failed: 2 });
    });

    test('the log forgets what came to its end long ago, now and then, and nothing that is on its way', async () => {
      const [store, clock, hook] = [watched(), new ManualClock(NOW), await receiver(({ path, answer }) => answer(path === '/hook' ? 200 : 500))];
      const hooks = sender(store, clock, { keepLog: 60 * 60_000, pause: 2 * 60 * 60_000 });
      const [delivered, waiting] = [await due(hook.url), await due(`${hook.url}/no`)];
      hooks.start();
      await Promise.all([store.whenDelivered(delivered.id), store.whenTried(waiting.id, 1)]);
      const log = async (): Promise<string[]> => (await jobs.deliveries(endpointId, { limit: 9 })).map(({ id }) => id).sort();
      const newer = async (): Promise<string> => {
        const { id } = await due(hook.url, clock.now());
        hooks.poke();
        await store.whenDelivered(id);
        return id;
      };
      clock.advance(60 * 60_000);
      const second = await newer();
      assert.deepEqual(await log(), [delivered.id, waiting.id, second].sort());
      // It is old by now, but the log was looked through a minute ago.
      clock.advance(60_000);
      const third = await newer();
      assert.deepEqual(await log(), [delivered.id, waiting.id, second, third].sort());
      clock.advance(9 * 60_000);
      store.forgetFails = true;
      const fourth = await newer();
      store.forgetFails = false;
      clock.advance(10 * 60_000);
      const fifth = await newer();
      assert.deepEqual(await log(), [waiting.id, second, third, fourth, fifth].sort());
      assert.deepEqual(store.forgets, [0, 60, 70, 80].map((minutes) => NOW + (minutes - 60) * 60_000));
    });

    test('the next attempt comes by itself', async () => {
      const [store, hook] = [watched(), await receiver(({ answer }, count) => answer(count < 3 ? 500 : 200))];
      // Nobody pokes: the first attempt is found by the look that happens now and then.
      sender(store, systemClock, { pause: 20, lookEvery: 50 }).start();
      const delivery = await due(hook.url, Date.now());
      assert.equal((await store.whenDelivered(delivery.id)).attempts, 3);
    });

    test('a job that ends sends its webhook; one that is purged does not', async () => {
      const [store, clock, hook] = [watched(), new ManualClock(NOW), await receiver()];
      const hooks = sender(store, clock);
      const queue = new JobQueue({
        store: jobs, wakeups: noWakeups, clock, log,
        deliveryOf: (job, payloads) => deliveryOf(job, payloads, randomIds.resource(), clock.now()),
        onDelivery: () => hooks.poke(),
      });
      hooks.start();
      const endpoint = { id: endpointId, accountId: 'owner', executionTimeout: 0, jobTtl: 86_400_000, retention: null, maxRetries: 1 };
      const submit = (input: string): Promise<Job> => queue.submit({ endpoint, accountId: 'a1', request: `{"input":${input}}`, terms: { webhook: hook.url } });
      const finished = await submit('{"n":1.0}');
      await queue.take(endpointId, 'w1', 1, 1_000, new AbortController().signal);
      clock.advance(25);
      await queue.finish(endpointId, seqOf(finished.id) ?? 0, { workerId: 'w1' }, { output: '[1.0]', error: null });
      await hook.has(1);
      assert.equal(hook.received[0]?.body, `{"id":"${finished.id}","status":"COMPLETED","delayTime":0,"executionTime":25,"workerId":"w1","output":[1.0],"input":{"n":1.0},"webhook":"${hook.url}"}`);
      await submit('"purged"');
      assert.equal(await queue.purge(endpointId), 1);
      const cancelled = await submit('"cancelled"');
      await queue.cancel(endpointId, seqOf(cancelled.id) ?? 0);
      await hook.has(2);
      assert.equal(hook.received[1]?.body, `{"id":"${cancelled.id}","status":"CANCELLED","delayTime":0,"executionTime":0,"workerId":"","input":"cancelled","webhook":"${hook.url}"}`);
      queue.close();
    });
  });
}
