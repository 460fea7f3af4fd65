import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { checkProperty, seed } from '../../../testing/src/property-testing.ts';
import { PendingTakes } from './pending-takes.ts';
import type { PendingTake } from './pending-takes.ts';

function pendingTake(workerId: string, room: number): PendingTake<number> & { handed: number[][] } {
  const handed: number[][] = [];
  return { workerId, room, handed, resolve: (given) => void handed.push(given) };
}

describe('pending takes', () => {
  test('get one job each, in order of arrival, before any gets two', () => {
    const pendingTakes = new PendingTakes<number>();
    for (const one of [pendingTake('a', 3), pendingTake('b', 1), pendingTake('c', 2)]) pendingTakes.add(one);
    assert.deepEqual(
      pendingTakes.roundRobin(10).map(({ workerId }) => workerId),
      ['a', 'b', 'c', 'a', 'c', 'a'],
    );
    assert.deepEqual(
      pendingTakes.roundRobin(4).map(({ workerId }) => workerId),
      ['a', 'b', 'c', 'a'],
    );
  });

  test('that were removed are known to be gone', () => {
    const pendingTakes = new PendingTakes<number>();
    const [a, b] = [pendingTake('a', 2), pendingTake('b', 2)];
    pendingTakes.add(a);
    pendingTakes.add(b);
    pendingTakes.remove(b);
    assert.deepEqual(
      pendingTakes.roundRobin(10).map(({ workerId }) => workerId),
      ['a', 'a'],
    );
    assert.deepEqual([pendingTakes.has(a), pendingTakes.has(b), pendingTakes.size], [true, false, 1]);
  });

  test('may be released without jobs', () => {
    const pendingTakes = new PendingTakes<number>();
    const [a, b] = [pendingTake('a', 2), pendingTake('b', 2)];
    pendingTakes.add(a);
    pendingTakes.add(b);
    pendingTakes.end(({ workerId }) => workerId === 'a');
    assert.deepEqual([a.handed, b.handed, pendingTakes.size], [[[]], [], 1]);
  });

  test(`use all room, and none is two jobs ahead of another that has room (seed ${seed})`, async () => {
    await checkProperty(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 6 }), { maxLength: 8 }),
        fc.integer({ min: 0, max: 50 }),
        (rooms, wanted) => {
          const pendingTakes = new PendingTakes<number>();
          const all = rooms.map((room, index) => pendingTake(String(index), room));
          for (const one of all) pendingTakes.add(one);
          const counts = rooms.map(() => 0);
          for (const { workerId } of pendingTakes.roundRobin(wanted))
            counts[Number(workerId)] = (counts[Number(workerId)] ?? 0) + 1;
          const sum = counts.reduce((total, count) => total + count, 0);
          assert.equal(
            sum,
            Math.min(
              wanted,
              rooms.reduce((total, room) => total + room, 0),
            ),
          );
          for (const [index, count] of counts.entries()) {
            assert.ok(count <= (rooms[index] ?? 0));
            if (count < (rooms[index] ?? 0)) assert.ok(counts.every((other) => other <= count + 1));
          }
        },
      ),
    );
  });
});
