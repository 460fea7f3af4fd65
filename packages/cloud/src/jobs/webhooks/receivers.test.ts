import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { check } from '../../../../../tests/support/seed.ts';
import { Receivers } from './receivers.ts';
import type { Parked } from './receivers.ts';

const MEGABYTE = 1024 * 1024;
const parked = (id: string, bytes = 0): Parked => ({ endpointId: 'e', id, until: 1, bytes });

test('never more than allowed at once, nobody is forgotten, and each goes once', async () => {
  await check(
    fc.property(
      fc.array(fc.nat(4), { maxLength: 60 }),
      fc.integer({ min: 1, max: 6 }),
      fc.integer({ min: 1, max: 3 }),
      fc.infiniteStream(fc.nat(100)),
      (hosts, together, perHost, choices) => {
        const receivers = new Receivers({ together, perHost, bytes: 0, parked: 1000 });
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
          receivers.leave(host ?? '', 0);
          for (let turn = receivers.next(); turn !== undefined; turn = receivers.next())
            go(turn.host, turn.parked.id);
        };
        hosts.forEach((number, index) => {
          const host = `host ${number}`;
          if (receivers.enter(host, 0)) go(host, String(index));
          else receivers.park(host, parked(String(index)));
          if (under.length > 0 && (choices.next().value ?? 0) % 3 === 0) leaveOne();
        });
        while (under.length > 0) leaveOne();
        assert.equal(gone.size, hosts.length);
      },
    ),
  );
});

test('receivers take turns, the first in line of each first', () => {
  const receivers = new Receivers({ together: 1, perHost: 1, bytes: 0, parked: 1000 });
  assert.ok(receivers.enter('busy', 0));
  for (const id of ['a1', 'a2', 'a3']) receivers.park('a', parked(id));
  for (const id of ['b1', 'b2']) receivers.park('b', parked(id));
  const order: (string | undefined)[] = [];
  for (let host: string | undefined = 'busy'; host !== undefined; ) {
    receivers.leave(host, 0);
    const turn = receivers.next();
    if (turn !== undefined) order.push(turn.parked.id);
    host = turn?.host;
  }
  assert.deepEqual(order, ['a1', 'b1', 'a2', 'b2', 'a3']);
});

test('whoever comes later does not pass those that wait', () => {
  const receivers = new Receivers({ together: 2, perHost: 1, bytes: 0, parked: 1000 });
  assert.ok(receivers.enter('a', 0));
  receivers.park('a', parked('a1'));
  receivers.leave('a', 0);
  assert.ok(!receivers.enter('a', 0));
  assert.equal(receivers.next()?.parked.id, 'a1');
});

test('one that is parked again is renewed, and too many are not remembered', () => {
  const receivers = new Receivers({ together: 1, perHost: 1, bytes: 0, parked: 1 });
  receivers.park('a', parked('a1'));
  receivers.park('a', { ...parked('a1'), until: 2 });
  receivers.park('a', parked('a2'));
  assert.equal(receivers.next()?.parked.until, 2);
  receivers.leave('a', 0);
  assert.equal(receivers.next(), undefined);
});

test('large ones are together and at one receiver no larger than allowed, and hold up no small ones', () => {
  const receivers = new Receivers({ together: 100, perHost: 100, bytes: 40 * MEGABYTE, parked: 1000 });
  assert.ok(receivers.enter('a', 60 * MEGABYTE), 'one has its place, however large');
  assert.ok(!receivers.enter('b', 2 * MEGABYTE));
  assert.ok(receivers.enter('a', MEGABYTE) && receivers.enter('b', MEGABYTE));
  receivers.park('b', parked('b1', 2 * MEGABYTE));
  receivers.leave('a', 60 * MEGABYTE);
  assert.equal(receivers.next()?.parked.id, 'b1');
  assert.ok(receivers.enter('a', 8 * MEGABYTE));
  assert.ok(!receivers.enter('a', 8 * MEGABYTE), 'a quarter is enough for one receiver');
  assert.ok(receivers.enter('c', 8 * MEGABYTE));
});
