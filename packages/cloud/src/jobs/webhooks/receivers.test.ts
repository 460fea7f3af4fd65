import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { check } from '../../../../../tests/support/seed.ts';
import { Receivers } from './receivers.ts';

const parked = (id: string): { endpointId: string; id: string; until: number } => ({ endpointId: 'e', id, until: 1 });

test('never more than allowed at once, nobody is forgotten, and each goes once', async () => {
  await check(
    fc.property(fc.array(fc.nat(4), { maxLength: 60 }), fc.integer({ min: 1, max: 6 }), fc.integer({ min: 1, max: 3 }), fc.infiniteStream(fc.nat(100)), (hosts, together, perHost, choices) => {
      const receivers = new Receivers({ together, perHost, parked: 1000 });
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
        receivers.leave(host ?? '');
        for (let turn = receivers.next(); turn !== undefined; turn = receivers.next()) go(turn.host, turn.parked.id);
      };
      hosts.forEach((number, index) => {
        const host = `host ${number}`;
        if (receivers.enter(host)) go(host, String(index));
        else receivers.park(host, parked(String(index)));
        if (under.length > 0 && (choices.next().value ?? 0) % 3 === 0) leaveOne();
      });
      while (under.length > 0) leaveOne();
      assert.equal(gone.size, hosts.length);
    }),
  );
});

test('receivers take turns, the first in line of each first', () => {
  const receivers = new Receivers({ together: 1, perHost: 1, parked: 1000 });
  assert.ok(receivers.enter('busy'));
  for (const id of ['a1', 'a2', 'a3']) receivers.park('a', parked(id));
  for (const id of ['b1', 'b2']) receivers.park('b', parked(id));
  const order: (string | undefined)[] = [];
  for (let host: string | undefined = 'busy'; host !== undefined; ) {
    receivers.leave(host);
    const turn = receivers.next();
    if (turn !== undefined) order.push(turn.parked.id);
    host = turn?.host;
  }
  assert.deepEqual(order, ['a1', 'b1', 'a2', 'b2', 'a3']);
});

test('whoever comes later does not pass those that wait', () => {
  const receivers = new Receivers({ together: 2, perHost: 1, parked: 1000 });
  assert.ok(receivers.enter('a'));
  receivers.park('a', parked('a1'));
  receivers.leave('a');
  assert.ok(!receivers.enter('a'));
  assert.equal(receivers.next()?.parked.id, 'a1');
});

test('one that is parked again is renewed, and too many are not remembered', () => {
  const receivers = new Receivers({ together: 1, perHost: 1, parked: 1 });
  receivers.park('a', { endpointId: 'e', id: 'a1', until: 1 });
  receivers.park('a', { endpointId: 'e', id: 'a1', until: 2 });
  receivers.park('a', parked('a2'));
  assert.equal(receivers.next()?.parked.until, 2);
  receivers.leave('a');
  assert.equal(receivers.next(), undefined);
});
