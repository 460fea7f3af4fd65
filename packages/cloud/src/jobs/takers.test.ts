import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { check, seed } from '../../../../tests/support/seed.ts';
import { Takers } from './takers.ts';
import type { Taker } from './takers.ts';

function taker(workerId: string, room: number): Taker<number> & { handed: number[][] } {
  const handed: number[][] = [];
  return { workerId, room, handed, hand: (given) => void handed.push(given) };
}

describe('those who wait for jobs', () => {
  test('get one each, in the order in which they came, before anyone gets two', () => {
    const takers = new Takers<number>();
    for (const one of [taker('a', 3), taker('b', 1), taker('c', 2)]) takers.add(one);
    assert.deepEqual(
      takers.turns(10).map(({ workerId }) => workerId),
      ['a', 'b', 'c', 'a', 'c', 'a'],
    );
    assert.deepEqual(
      takers.turns(4).map(({ workerId }) => workerId),
      ['a', 'b', 'c', 'a'],
    );
  });

  test('who left is known to be gone', () => {
    const takers = new Takers<number>();
    const [a, b] = [taker('a', 2), taker('b', 2)];
    takers.add(a);
    takers.add(b);
    takers.remove(b);
    assert.deepEqual(
      takers.turns(10).map(({ workerId }) => workerId),
      ['a', 'a'],
    );
    assert.deepEqual([takers.has(a), takers.has(b), takers.size], [true, false, 1]);
  });

  test('may be let go with nothing', () => {
    const takers = new Takers<number>();
    const [a, b] = [taker('a', 2), taker('b', 2)];
    takers.add(a);
    takers.add(b);
    takers.release(({ workerId }) => workerId === 'a');
    assert.deepEqual([a.handed, b.handed, takers.size], [[[]], [], 1]);
  });

  test(`however many wait, all room is used and nobody is two ahead of another who has room (seed ${seed})`, async () => {
    await check(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 6 }), { maxLength: 8 }),
        fc.integer({ min: 0, max: 50 }),
        (rooms, wanted) => {
          const takers = new Takers<number>();
          const all = rooms.map((room, index) => taker(String(index), room));
          for (const one of all) takers.add(one);
          const counts = rooms.map(() => 0);
          for (const { workerId } of takers.turns(wanted))
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
