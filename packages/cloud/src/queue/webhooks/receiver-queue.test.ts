import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { checkProperty } from '../../../../testing/src/property-testing.ts';
import { ReceiverQueue } from './receiver-queue.ts';
import type { QueuedDelivery } from './receiver-queue.ts';

const MEGABYTE = 1024 * 1024;
const parked = (id: string, bytes = 0): QueuedDelivery => ({ endpointId: 'e', id, leasedUntil: 1, bytes });

test('never more than allowed at once, none is forgotten, and each is sent once', async () => {
  await checkProperty(
    fc.property(
      fc.array(fc.nat(4), { maxLength: 60 }),
      fc.integer({ min: 1, max: 6 }),
      fc.integer({ min: 1, max: 3 }),
      fc.infiniteStream(fc.nat(100)),
      (hosts, together, perHost, choices) => {
        const receivers = new ReceiverQueue({
          maxConcurrent: together,
          maxPerHost: perHost,
          maxBytes: 0,
          maxQueued: 1000,
        });
        const under: string[] = [];
        const gone = new Set<string>();
        const go = (host: string, id: string): void => {
          under.push(host);
          assert.ok(!gone.has(id));
          gone.add(id);
          assert.ok(under.length <= together);
          assert.ok(under.filter((other) => other === host).length <= perHost);
        };
        const leaveOne = (): void => {
          const [host] = under.splice((choices.next().value ?? 0) % under.length, 1);
          receivers.release(host ?? '', 0);
          for (let turn = receivers.dequeue(); turn !== undefined; turn = receivers.dequeue())
            go(turn.host, turn.parked.id);
        };
        hosts.forEach((number, index) => {
          const host = `host ${number}`;
          if (receivers.acquire(host, 0)) go(host, String(index));
          else receivers.enqueue(host, parked(String(index)));
          if (under.length > 0 && (choices.next().value ?? 0) % 3 === 0) leaveOne();
        });
        while (under.length > 0) leaveOne();
        assert.equal(gone.size, hosts.length);
      },
    ),
  );
});

test('receivers take turns, each with its oldest delivery first', () => {
  const receivers = new ReceiverQueue({ maxConcurrent: 1, maxPerHost: 1, maxBytes: 0, maxQueued: 1000 });
  assert.ok(receivers.acquire('busy', 0));
  for (const id of ['a1', 'a2', 'a3']) receivers.enqueue('a', parked(id));
  for (const id of ['b1', 'b2']) receivers.enqueue('b', parked(id));
  const order: (string | undefined)[] = [];
  for (let host: string | undefined = 'busy'; host !== undefined; ) {
    receivers.release(host, 0);
    const turn = receivers.dequeue();
    if (turn !== undefined) order.push(turn.parked.id);
    host = turn?.host;
  }
  assert.deepEqual(order, ['a1', 'b1', 'a2', 'b2', 'a3']);
});

test('a later delivery does not overtake waiting ones', () => {
  const receivers = new ReceiverQueue({ maxConcurrent: 2, maxPerHost: 1, maxBytes: 0, maxQueued: 1000 });
  assert.ok(receivers.acquire('a', 0));
  receivers.enqueue('a', parked('a1'));
  receivers.release('a', 0);
  assert.ok(!receivers.acquire('a', 0));
  assert.equal(receivers.dequeue()?.parked.id, 'a1');
});

test('parking again renews the entry, and the number of entries is limited', () => {
  const receivers = new ReceiverQueue({ maxConcurrent: 1, maxPerHost: 1, maxBytes: 0, maxQueued: 1 });
  receivers.enqueue('a', parked('a1'));
  receivers.enqueue('a', { ...parked('a1'), leasedUntil: 2 });
  receivers.enqueue('a', parked('a2'));
  assert.equal(receivers.dequeue()?.parked.leasedUntil, 2);
  receivers.release('a', 0);
  assert.equal(receivers.dequeue(), undefined);
});

test('large deliveries stay within the byte limits, in all and per receiver, and do not block small ones', () => {
  const receivers = new ReceiverQueue({
    maxConcurrent: 100,
    maxPerHost: 100,
    maxBytes: 40 * MEGABYTE,
    maxQueued: 1000,
  });
  assert.ok(receivers.acquire('a', 60 * MEGABYTE), 'one has its place, however large');
  assert.ok(!receivers.acquire('b', 2 * MEGABYTE));
  assert.ok(receivers.acquire('a', MEGABYTE) && receivers.acquire('b', MEGABYTE));
  receivers.enqueue('b', parked('b1', 2 * MEGABYTE));
  receivers.release('a', 60 * MEGABYTE);
  assert.equal(receivers.dequeue()?.parked.id, 'b1');
  assert.ok(receivers.acquire('a', 8 * MEGABYTE));
  assert.ok(!receivers.acquire('a', 8 * MEGABYTE), 'a quarter is enough for one receiver');
  assert.ok(receivers.acquire('c', 8 * MEGABYTE));
});
