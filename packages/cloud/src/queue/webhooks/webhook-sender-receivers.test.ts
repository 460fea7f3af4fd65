import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DATABASES } from '../../../../testing/src/test-database.ts';
import { ManualClock } from '../../support/clock.ts';
import { privateAddressReason } from './private-addresses.ts';
import { NOW, Receiver, WebhookFixture } from './webhook-sender.fixture.ts';
import type { Received } from './webhook-sender.fixture.ts';

for (const kind of DATABASES) {
  describe(`webhooks on ${kind}`, { timeout: 60_000 }, () => {
    const bench = new WebhookFixture(kind);

    test('a slow receiver delays only its own webhooks', async () => {
      const [store, clock, slow, fast] = [
        bench.recordingStore(),
        new ManualClock(NOW),
        await bench.receiver(() => undefined),
        await bench.receiver(),
      ];
      const hooks = bench.sender(store, clock);
      const slowOnes = await Promise.all(
        Array.from({ length: 40 }, () => bench.createDueDelivery(slow.url, NOW - 1)),
      );
      const fastOnes = await Promise.all(Array.from({ length: 40 }, () => bench.createDueDelivery(fast.url)));
      hooks.start();
      await Promise.all(fastOnes.map(({ id }) => store.whenDelivered(id)));
      await slow.has(8);
      assert.equal(slow.received.length, 8);
      for (let answered = 0; answered < slowOnes.length; answered += 1) {
        await slow.has(answered + 1);
        slow.received[answered]?.answer(200);
      }
      await Promise.all(slowOnes.map(({ id }) => store.whenDelivered(id)));
      assert.equal(slow.mostOpen, 8);
      assert.equal(new Set(slow.attempts().map(String)).size, 40);
      assert.equal(slow.received.length, 40);
    });

    test('no more than allowed are sent at once, and receivers take turns', async () => {
      const [store, clock] = [bench.recordingStore(), new ManualClock(NOW)];
      const hooks = bench.sender(store, clock, { maxConcurrent: 3, maxPerHost: 2 });
      const receivers: Receiver[] = [];
      let most = 0;
      const answerSoon = ({ answer }: Received): void => {
        most = Math.max(
          most,
          receivers.reduce((sum, { open }) => sum + open, 0),
        );
        setImmediate(() => answer(200));
      };
      for (let count = 0; count < 3; count += 1) receivers.push(await bench.receiver(answerSoon));
      const all = (
        await Promise.all(
          receivers.flatMap(({ url }) => Array.from({ length: 6 }, () => bench.createDueDelivery(url))),
        )
      ).map(({ id }) => id);
      hooks.start();
      await Promise.all(all.map((id) => store.whenDelivered(id)));
      assert.ok(most <= 3, `${most} at once`);
      assert.ok(receivers.every(({ mostOpen }) => mostOpen <= 2));
    });

    test('an attempt without an answer fails', async () => {
      const [store, hook] = [bench.recordingStore(), await bench.receiver(() => undefined)];
      const delivery = await bench.createDueDelivery(hook.url);
      bench.sender(store, new ManualClock(NOW), { timeout: 50 }).start();
      const failed = await store.whenTried(delivery.id, 1);
      assert.deepEqual(
        [failed.state, failed.lastStatus, failed.lastError],
        ['pending', null, 'no answer within 0.05 seconds'],
      );
    });

    test('an attempt to an unknown name or an unreachable receiver fails', async () => {
      const [store, clock, gone] = [
        bench.recordingStore(),
        new ManualClock(NOW),
        await new Receiver().listen(),
      ];
      const rules = { resolve: () => new Promise<never>(() => undefined), refusal: () => undefined };
      const [silent, refused] = [
        await bench.createDueDelivery('http://silent.example/'),
        await bench.createDueDelivery(gone.url),
      ];
      const { host } = new URL(gone.url);
      gone.close();
      bench.sender(store, clock, { timeout: 50 }, { targetPolicy: rules }).start();
      assert.equal((await store.whenTried(silent.id, 1)).lastError, 'no answer within 0.05 seconds');
      assert.equal(
        (await store.whenTried(refused.id, 1)).lastError,
        `${host} could not be reached: ECONNREFUSED`,
      );
    });

    test('a private address is not reached unless that is allowed', async () => {
      const [store, clock, hook] = [bench.recordingStore(), new ManualClock(NOW), await bench.receiver()];
      const hooks = bench.sender(store, clock, { allowPrivate: false });
      const urls = [
        hook.url,
        `http://localhost:${hook.port}/`,
        `http://[::ffff:127.0.0.1]:${hook.port}/`,
        `http://user@127.0.0.1:${hook.port}/`,
        'nonsense',
      ];
      const refused = await Promise.all(urls.map((url) => bench.createDueDelivery(url)));
      hooks.start();
      const errors = await Promise.all(
        refused.map(async ({ id }) => (await store.whenTried(id, 1)).lastError ?? ''),
      );
      const reach = 'which webhooks do not reach unless the operator allows it with webhooks.allowPrivate';
      assert.deepEqual(errors, [
        `127.0.0.1 is a loopback address, ${reach}`,
        `localhost leads to a loopback address, ${reach}`,
        `::ffff:7f00:1 is a loopback address, ${reach}`,
        'the webhook has a user name or password in its address; put a token into its path or query instead',
        'the webhook is not an address',
      ]);
      assert.equal(hook.connections, 0);
    });

    test('a name is resolved once, so one that resolves differently later is not reached', async () => {
      const store = bench.recordingStore();
      const inside = await bench.receiver();
      const outside = bench.closeAfterTest(await new Receiver().listen('127.0.0.2', inside.port));
      let looks = 0;
      // 127.0.0.2 stands for the public address here, so that nothing leaves this machine.
      const rules = {
        resolve: async () => [{ address: looks++ === 0 ? '127.0.0.2' : '127.0.0.1', family: 4 }],
        refusal: (address: string) => (address === '127.0.0.2' ? undefined : privateAddressReason(address)),
      };
      const hooks = bench.sender(store, new ManualClock(NOW), {}, { targetPolicy: rules });
      const delivery = await bench.createDueDelivery(`http://rebinding.example:${inside.port}/`);
      hooks.start();
      await store.whenDelivered(delivery.id);
      assert.deepEqual([looks, inside.connections, outside.connections], [1, 0, 1]);
      const second = await bench.createDueDelivery(`http://rebinding.example:${inside.port}/`);
      hooks.wake();
      assert.match(
        (await store.whenTried(second.id, 1)).lastError ?? '',
        /^rebinding.example leads to a loopback address/,
      );
      assert.deepEqual([looks, inside.connections, outside.connections], [2, 0, 1]);
    });

    test('a redirect is not followed', async () => {
      const [store, elsewhere] = [bench.recordingStore(), await bench.receiver()];
      const hook = await bench.receiver(({ answer }) => answer(302, { Location: elsewhere.url }));
      const delivery = await bench.createDueDelivery(hook.url);
      bench.sender(store, new ManualClock(NOW)).start();
      const failed = await store.whenTried(delivery.id, 1);
      assert.deepEqual(
        [failed.lastStatus, failed.lastError],
        [302, 'the receiver answered 302; redirects are not followed'],
      );
      assert.equal(elsewhere.connections, 0);
    });
  });
}
