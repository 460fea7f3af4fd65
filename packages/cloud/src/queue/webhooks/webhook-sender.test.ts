import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DATABASES } from '../../../../testing/src/test-database.ts';
import type { Job } from '../../domain/job-records.ts';
import { noopWakeupBus } from '../../store/wakeup-bus.ts';
import { ManualClock, systemClock } from '../../support/clock.ts';
import { randomIds } from '../../support/ids.ts';
import { seqFromJobId } from '../../domain/job-ids.ts';
import { JobQueue } from '../job-queue.ts';
import { deliveryOf } from './webhook-delivery.ts';
import { signWebhook } from './webhook-signature.ts';
import { NOW, log, secretOf, WebhookFixture } from './webhook-sender.fixture.ts';
import { WebhookDeliveries } from './webhook-deliveries.ts';
import type { CloudEventBus } from '../../domain/events.ts';
import { EventBus } from '../../support/event-bus.ts';

/** Events that wake the sender as the server does. */
function waking(sender: { wake(): void }): CloudEventBus {
  const events: CloudEventBus = new EventBus();
  events.subscribe('webhook.due', () => sender.wake());
  return events;
}

for (const kind of DATABASES) {
  describe(`webhooks on ${kind}`, { timeout: 60_000 }, () => {
    const bench = new WebhookFixture(kind);

    test('delivers immediately, signed, with its id and attempt', async () => {
      const [store, clock, hook] = [bench.recordingStore(), new ManualClock(NOW), await bench.receiver()];
      const delivery = await bench.createDueDelivery(hook.url);
      bench.sender(store, clock).start();
      assert.deepEqual(await store.whenDelivered(delivery.id), {
        ...delivery,
        attempts: 1,
        nextAt: null,
        state: 'delivered',
        lastStatus: 200,
      });
      const [{ headers, body, path } = assert.fail()] = hook.received;
      assert.equal(path, '/hook');
      assert.equal(body, delivery.body);
      assert.equal(headers['content-type'], 'application/json');
      assert.equal(headers['user-agent'], 'Berth-Webhook/1');
      assert.equal(headers['x-berth-signature'], signWebhook(secretOf('a1'), body));
      assert.equal(headers['x-berth-delivery'], delivery.id);
      assert.equal(headers['x-berth-attempt'], '1');
      assert.deepEqual(await bench.jobs.findDelivery(bench.endpointId, delivery.id), {
        ...delivery,
        attempts: 1,
        nextAt: null,
        state: 'delivered',
        lastStatus: 200,
      });
    });

    test('a failed attempt is repeated after the pause, not before, under the same id', async () => {
      const [store, clock, hook] = [
        bench.recordingStore(),
        new ManualClock(NOW),
        await bench.receiver(({ answer }, count) => answer(count === 1 ? 500 : 200)),
      ];
      const hooks = bench.sender(store, clock);
      hooks.start();
      const delivery = await bench.createDueDelivery(hook.url);
      hooks.wake();
      const failed = await store.whenTried(delivery.id, 1);
      assert.deepEqual(
        [failed.state, failed.nextAt, failed.lastStatus, failed.lastError],
        ['pending', NOW + 10_000, 500, 'the receiver answered 500'],
      );
      clock.advance(9_999);
      const other = await bench.createDueDelivery(hook.url, clock.now());
      hooks.wake();
      await store.whenDelivered(other.id);
      assert.equal(hook.received.length, 2);
      clock.advance(1);
      hooks.wake();
      const delivered = await store.whenDelivered(delivery.id);
      assert.deepEqual([delivered.attempts, delivered.lastStatus, delivered.lastError], [2, 200, null]);
      assert.deepEqual(hook.attempts(), [
        [delivery.id, '1'],
        [other.id, '1'],
        [delivery.id, '2'],
      ]);
    });

    test('fails after three attempts; a redelivery sends it again, and attempt numbers continue', async () => {
      let status = 503;
      const [store, clock, hook] = [
        bench.recordingStore(),
        new ManualClock(NOW),
        await bench.receiver(({ answer }) => answer(status)),
      ];
      const hooks = bench.sender(store, clock);
      const webhooks = new WebhookDeliveries({ store, clock, events: waking(hooks) });
      const delivery = await bench.createDueDelivery(hook.url);
      hooks.start();
      for (const attempt of [1, 2]) {
        await store.whenTried(delivery.id, attempt);
        clock.advance(10_000);
        hooks.wake();
      }
      const failed = await store.when(delivery.id, ({ state }) => state === 'failed');
      assert.deepEqual(
        [failed.attempts, failed.nextAt, failed.lastError],
        [3, null, 'the receiver answered 503'],
      );
      status = 202;
      assert.equal((await webhooks.redeliver(bench.endpointId, delivery.id)).state, 'pending');
      assert.equal((await store.whenDelivered(delivery.id)).attempts, 4);
      // One that was delivered at its first attempt has a whole series again: 7, 8 and 9.
      assert.equal((await webhooks.redeliver(bench.endpointId, delivery.id)).attempts, 4);
      status = 500;
      for (const attempt of [7, 8]) {
        await store.whenTried(delivery.id, attempt);
        clock.advance(10_000);
        hooks.wake();
      }
      await store.when(delivery.id, ({ state, attempts }) => state === 'failed' && attempts === 9);
      assert.deepEqual(
        hook.attempts(),
        ['1', '2', '3', '4', '7', '8', '9'].map((attempt) => [delivery.id, attempt]),
      );
      await hooks.close();
      assert.deepEqual(hooks.counts, { attempts: 7, delivered: 1, failed: 2 });
    });

    test('the log is periodically cleared of old ended deliveries, and of no pending ones', async () => {
      const [store, clock, hook] = [
        bench.recordingStore(),
        new ManualClock(NOW),
        await bench.receiver(({ path, answer }) => answer(path === '/hook' ? 200 : 500)),
      ];
      const hooks = bench.sender(store, clock, { keepLog: 60 * 60_000, pause: 2 * 60 * 60_000 });
      const [delivered, waiting] = [
        await bench.createDueDelivery(hook.url),
        await bench.createDueDelivery(`${hook.url}/no`),
      ];
      hooks.start();
      await Promise.all([store.whenDelivered(delivered.id), store.whenTried(waiting.id, 1)]);
      const log = async (): Promise<string[]> =>
        (await bench.jobs.listDeliveries(bench.endpointId, { limit: 9 })).map(({ id }) => id).sort();
      const newer = async (): Promise<string> => {
        const { id } = await bench.createDueDelivery(hook.url, clock.now());
        hooks.wake();
        await store.whenDelivered(id);
        return id;
      };
      clock.advance(60 * 60_000);
      const second = await newer();
      assert.deepEqual(await log(), [delivered.id, waiting.id, second].sort());
      // It is old by now, but the log was cleared a minute ago.
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
      assert.deepEqual(
        store.forgets,
        [0, 60, 70, 80].map((minutes) => NOW + (minutes - 60) * 60_000),
      );
    });

    test('the next attempt comes by itself', async () => {
      const [store, hook] = [
        bench.recordingStore(),
        await bench.receiver(({ answer }, count) => answer(count < 3 ? 500 : 200)),
      ];
      // Without a wake: the periodic check finds the first attempt.
      bench.sender(store, systemClock, { pause: 20, pollInterval: 50 }).start();
      const delivery = await bench.createDueDelivery(hook.url, Date.now());
      assert.equal((await store.whenDelivered(delivery.id)).attempts, 3);
    });

    test('a job that ends sends its webhook; one that is purged does not', async () => {
      const [store, clock, hook] = [bench.recordingStore(), new ManualClock(NOW), await bench.receiver()];
      const hooks = bench.sender(store, clock);
      const queue = new JobQueue({
        store: bench.jobs,
        wakeups: noopWakeupBus,
        clock,
        log,
        deliveryOf: (job, payloads) => deliveryOf(job, payloads, randomIds.resource(), clock.now()),
        events: waking(hooks),
      });
      hooks.start();
      const endpoint = {
        id: bench.endpointId,
        accountId: 'owner',
        executionTimeout: 0,
        jobTtl: 86_400_000,
        retention: null,
        maxRetries: 1,
      };
      const submit = (input: string): Promise<Job> =>
        queue.submit({
          endpoint,
          accountId: 'a1',
          request: `{"input":${input}}`,
          options: { webhook: hook.url },
        });
      const finished = await submit('{"n":1.0}');
      await queue.take(bench.endpointId, 'w1', 1, 1_000, new AbortController().signal);
      clock.advance(25);
      await queue.finish(
        bench.endpointId,
        seqFromJobId(finished.id) ?? 0,
        { workerId: 'w1' },
        { output: '[1.0]', error: null },
      );
      await hook.has(1);
      assert.equal(
        hook.received[0]?.body,
        `{"id":"${finished.id}","status":"COMPLETED","delayTime":0,"executionTime":25,"workerId":"w1","output":[1.0],"input":{"n":1.0},"webhook":"${hook.url}"}`,
      );
      await submit('"purged"');
      assert.equal(await queue.purge(bench.endpointId), 1);
      const cancelled = await submit('"cancelled"');
      await queue.cancel(bench.endpointId, seqFromJobId(cancelled.id) ?? 0);
      await hook.has(2);
      assert.equal(
        hook.received[1]?.body,
        `{"id":"${cancelled.id}","status":"CANCELLED","delayTime":0,"executionTime":0,"workerId":"","input":"cancelled","webhook":"${hook.url}"}`,
      );
      queue.close();
    });
  });
}
