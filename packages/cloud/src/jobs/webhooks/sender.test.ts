import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, afterEach, before, describe, test } from 'node:test';
import { DATABASES } from '../../../../../tests/support/databases.ts';
import { migratedDatabase } from '../../../../../tests/support/migrated-database.ts';
import type { MigratedDatabase } from '../../../../../tests/support/migrated-database.ts';
import type { Delivery, DeliveryEntry, Job } from '../../store/job-records.ts';
import type { JobStore } from '../../store/jobs.ts';
import { noWakeups } from '../../store/wakeups.ts';
import { ManualClock, systemClock } from '../../support/clock.ts';
import type { Clock } from '../../support/clock.ts';
import { randomIds } from '../../support/ids.ts';
import { createLog } from '../../support/log.ts';
import { seqOf } from '../identity.ts';
import { JobQueue } from '../queue.ts';
import { privateKind } from './address.ts';
import { deliveryOf } from './delivery.ts';
import type { DeliveryStore } from './lease.ts';
import { senderOptions } from './options.ts';
import type { SenderOptions } from './options.ts';
import { WebhookSender } from './sender.ts';
import type { SenderParts } from './sender.ts';
import { sign, webhookSecret } from './signature.ts';
import { Webhooks } from './webhooks.ts';

const OPTIONS = senderOptions({ allowPrivate: true, attempts: 3, pause: 10, timeout: 10, keepLog: 72 });
const NOW = Date.UTC(2026, 5, 1);
const log = createLog({ level: 'silent', format: 'json' });
const secretOf = (accountId: string): string => webhookSecret(Buffer.alloc(32, 5), accountId);

interface Received {
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
  answer(status: number, headers?: Record<string, string>): void;
}

/** A receiver on loopback. It answers as told, or leaves the answer to the test. */
class Receiver {
  readonly received: Received[] = [];
  readonly #server: http.Server;
  #waiting: (() => void)[] = [];
  connections = 0;
  open = 0;
  mostOpen = 0;

  constructor(answer: (received: Received, count: number) => void = ({ answer: reply }) => reply(200)) {
    this.#server = http.createServer((request, response) => void this.#receive(request, response, answer));
    this.#server.on('connection', () => (this.connections += 1));
  }

  async #receive(request: http.IncomingMessage, response: ServerResponse, answer: (received: Received, count: number) => void): Promise<void> {
    this.open += 1;
    this.mostOpen = Math.max(this.mostOpen, this.open);
    response.once('close', () => (this.open -= 1));
    const received: Received = {
      path: request.url ?? '',
      headers: request.headers,
      body: await text(request),
      answer: (status, headers = {}) => void response.writeHead(status, headers).end('thank you'),
    };
    this.received.push(received);
    answer(received, this.received.length);
    for (const wake of this.#waiting.splice(0)) wake();
  }

  async listen(host = '127.0.0.1', port = 0): Promise<this> {
    await once(this.#server.listen(port, host), 'listening');
    return this;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/hook`;
  }

  /** Resolves when so many requests have come in. */
  async has(count: number): Promise<void> {
    while (this.received.length < count) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  attempts(): [string | string[] | undefined, string | string[] | undefined][] {
    return this.received.map(({ headers }) => [headers['x-berth-delivery'], headers['x-berth-attempt']]);
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

/** The real store, and a way to wait for what is written into it. */
class WatchedStore implements DeliveryStore {
  readonly #store: DeliveryStore;
  readonly saved: Delivery[] = [];
  #waiting: (() => void)[] = [];
  /** Times before which the log was to be forgotten. */
  readonly forgets: number[] = [];
  forgetFails = false;
  /** Runs before each save; what it throws, the save fails with. */
  beforeSave: (delivery: Delivery) => void = () => undefined;

  constructor(store: DeliveryStore) {
    this.#store = store;
  }

  dueDeliveries = (now: number, limit: number, bytes: number): Promise<Delivery[]> => this.#store.dueDeliveries(now, limit, bytes);
  deliveries = (endpointId: string, filter: { jobId?: string; limit: number }): Promise<DeliveryEntry[]> => this.#store.deliveries(endpointId, filter);
  findDelivery = (endpointId: string, id: string): Promise<Delivery | undefined> => this.#store.findDelivery(endpointId, id);

  async forgetDeliveries(before: number): Promise<void> {
    this.forgets.push(before);
    if (this.forgetFails) throw new Error('the store is away');
    await this.#store.forgetDeliveries(before);
    for (const wake of this.#waiting.splice(0)) wake();
  }

  async saveDelivery(delivery: Delivery): Promise<void> {
    this.beforeSave(delivery);
    await this.#store.saveDelivery(delivery);
    this.saved.push(delivery);
    for (const wake of this.#waiting.splice(0)) wake();
  }

  async changeDelivery(seen: Pick<Delivery, 'id' | 'endpointId' | 'nextAt'>, next: Delivery): Promise<boolean> {
    this.beforeSave(next);
    const changed = await this.#store.changeDelivery(seen, next);
    if (changed) this.saved.push(next);
    for (const wake of this.#waiting.splice(0)) wake();
    return changed;
  }

  /** The first version of a delivery that was written and is so. */
  async when(id: string, is: (delivery: Delivery) => boolean): Promise<Delivery> {
    for (;;) {
      const found = this.saved.find((delivery) => delivery.id === id && is(delivery));
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  whenDelivered(id: string): Promise<Delivery> {
    return this.when(id, ({ state }) => state === 'delivered');
  }

  /** After an attempt that did not end the series. */
  whenTried(id: string, attempts: number): Promise<Delivery> {
    return this.when(id, (delivery) => delivery.attempts === attempts && delivery.lastError !== null);
  }
}

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

    test('a slow receiver holds up only itself', async () => {
      const [store, clock, slow, fast] = [watched(), new ManualClock(NOW), await receiver(() => undefined), await receiver()];
      const hooks = sender(store, clock);
      const slowOnes = await Promise.all(Array.from({ length: 40 }, () => due(slow.url, NOW - 1)));
      const fastOnes = await Promise.all(Array.from({ length: 40 }, () => due(fast.url)));
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
      const [store, clock] = [watched(), new ManualClock(NOW)];
      const hooks = sender(store, clock, { together: 3, perHost: 2 });
      const receivers: Receiver[] = [];
      let most = 0;
      const answerSoon = ({ answer }: Received): void => {
        most = Math.max(most, receivers.reduce((sum, { open }) => sum + open, 0));
        setImmediate(() => answer(200));
      };
      for (let count = 0; count < 3; count += 1) receivers.push(await receiver(answerSoon));
      const all = (await Promise.all(receivers.flatMap(({ url }) => Array.from({ length: 6 }, () => due(url))))).map(({ id }) => id);
      hooks.start();
      await Promise.all(all.map((id) => store.whenDelivered(id)));
      assert.ok(most <= 3, `${most} at once`);
      assert.ok(receivers.every(({ mostOpen }) => mostOpen <= 2));
    });

    test('an answer that never comes is a failed attempt', async () => {
      const [store, hook] = [watched(), await receiver(() => undefined)];
      const delivery = await due(hook.url);
      sender(store, new ManualClock(NOW), { timeout: 50 }).start();
      const failed = await store.whenTried(delivery.id, 1);
      assert.deepEqual([failed.state, failed.lastStatus, failed.lastError], ['pending', null, 'no answer within 0.05 seconds']);
    });

    test('neither is a name that nobody answers for, nor a receiver that is not there', async () => {
      const [store, clock, gone] = [watched(), new ManualClock(NOW), await new Receiver().listen()];
      const rules = { resolve: () => new Promise<never>(() => undefined), refusal: () => undefined };
      const [silent, refused] = [await due('http://silent.example/'), await due(gone.url)];
      const { host } = new URL(gone.url);
      gone.close();
      sender(store, clock, { timeout: 50 }, { rules }).start();
      assert.equal((await store.whenTried(silent.id, 1)).lastError, 'no answer within 0.05 seconds');
      assert.equal((await store.whenTried(refused.id, 1)).lastError, `${host} could not be reached: ECONNREFUSED`);
    });

    test('a private address is not reached unless that is allowed', async () => {
      const [store, clock, hook] = [watched(), new ManualClock(NOW), await receiver()];
      const hooks = sender(store, clock, { allowPrivate: false });
      const urls = [hook.url, `http://localhost:${hook.port}/`, `http://[::ffff:127.0.0.1]:${hook.port}/`, `http://user@127.0.0.1:${hook.port}/`, 'nonsense'];
      const refused = await Promise.all(urls.map((url) => due(url)));
      hooks.start();
      const errors = await Promise.all(refused.map(async ({ id }) => (await store.whenTried(id, 1)).lastError ?? ''));
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

    test('a name that leads elsewhere at the second look does not get a second look', async () => {
      const store = watched();
      const inside = await receiver();
      const outside = closing(await new Receiver().listen('127.0.0.2', inside.port));
      let looks = 0;
      // 127.0.0.2 plays the public address here, so that nothing leaves this machine.
      const rules = {
        resolve: async () => [{ address: looks++ === 0 ? '127.0.0.2' : '127.0.0.1', family: 4 }],
        refusal: (address: string) => (address === '127.0.0.2' ? undefined : privateKind(address)),
      };
      const hooks = sender(store, new ManualClock(NOW), {}, { rules });
      const delivery = await due(`http://rebinding.example:${inside.port}/`);
      hooks.start();
      await store.whenDelivered(delivery.id);
      assert.deepEqual([looks, inside.connections, outside.connections], [1, 0, 1]);
      const second = await due(`http://rebinding.example:${inside.port}/`);
      hooks.poke();
      assert.match((await store.whenTried(second.id, 1)).lastError ?? '', /^rebinding.example leads to a loopback address/);
      assert.deepEqual([looks, inside.connections, outside.connections], [2, 0, 1]);
    });

    test('a redirect is not followed', async () => {
      const [store, elsewhere] = [watched(), await receiver()];
      const hook = await receiver(({ answer }) => answer(302, { Location: elsewhere.url }));
      const delivery = await due(hook.url);
      sender(store, new ManualClock(NOW)).start();
      const failed = await store.whenTried(delivery.id, 1);
      assert.deepEqual([failed.lastStatus, failed.lastError], [302, 'the receiver answered 302; redirects are not followed']);
      assert.equal(elsewhere.connections, 0);
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
