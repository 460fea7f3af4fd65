import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { shareOut } from './shard-share.ts';
import type { ShardMember } from './shard-share.ts';

const never = (): boolean => false;
const member = (server: string, hostId = server, isLeader = false): ShardMember => ({
  server,
  hostId,
  isLeader,
});

/** Who has how many when all servers have done what they shall, again and again. */
function settle(holders: (string | undefined)[], members: readonly ShardMember[]): Record<string, number> {
  for (let round = 0; round < 200; round += 1) {
    const view = { holders: [...holders], members };
    const steps = members.map(({ server }) => ({ server, ...shareOut(view, server, never) }));
    const givers = steps.filter(({ excess }) => excess > 0);
    const taken = steps.flatMap(({ take }) => take);
    assert.equal(new Set(taken).size, taken.length, 'two servers shall take one shard');
    for (const { server, take } of steps) for (const shard of take) holders[shard] = server;
    for (const { server } of givers) holders[holders.indexOf(server)] = undefined;
    if (taken.length === 0 && givers.length === 0)
      return Object.fromEntries(
        members.map(({ server }) => [server, holders.filter((holder) => holder === server).length]),
      );
  }
  return assert.fail(`it never settles: ${holders.join(' ')}`);
}

const free = (count: number): undefined[] => new Array<undefined>(count).fill(undefined);

describe('the share-out of shards', () => {
  test('a server alone takes all', () => {
    assert.deepEqual(settle(free(5), [member('a')]), { a: 5 });
  });

  test('free shards are spread evenly', () => {
    assert.deepEqual(settle(free(12), [member('a'), member('b'), member('c')]), { a: 4, b: 4, c: 4 });
    assert.deepEqual(settle(free(4), [member('a'), member('b'), member('c')]), { a: 2, b: 1, c: 1 });
    assert.deepEqual(settle(free(2), [member('a'), member('b'), member('c')]), { a: 1, b: 1, c: 0 });
  });

  test('a server that joins gets its share from those that have most', () => {
    const holders = ['a', 'a', 'a', 'a', 'b', 'b', 'b', 'b'];
    const counts = settle(holders, [member('a'), member('b'), member('c')]);
    assert.deepEqual(Object.values(counts).toSorted(), [2, 3, 3]);
  });

  test('the shards of a server that is gone go to those with fewest', () => {
    const holders = ['a', undefined, undefined, 'b', 'b', undefined];
    assert.deepEqual(settle(holders, [member('a'), member('b')]), { a: 3, b: 3 });
  });

  test('a fair share is left as it is', () => {
    const view = { holders: ['a', 'a', 'b'], members: [member('a'), member('b')] };
    for (const server of ['a', 'b']) assert.deepEqual(shareOut(view, server, never), { take: [], excess: 0 });
  });

  test('whose turn it is may be frozen: what stays free is taken by anybody', () => {
    const view = { holders: ['a', undefined], members: [member('a'), member('b')] };
    assert.deepEqual(shareOut(view, 'a', never).take, []);
    assert.deepEqual(shareOut(view, 'a', () => true).take, [1]);
  });

  test('of the servers of one host one takes part: the leader, or the first', () => {
    const host = [member('a', 'one'), member('b', 'one')];
    assert.deepEqual(settle(free(4), [...host, member('c', 'two')]), { a: 2, b: 0, c: 2 });
    assert.deepEqual(settle(['a', 'a', 'c', 'c'], [...host, member('c', 'two')]), { a: 2, b: 0, c: 2 });
    const led = [member('a', 'one'), member('b', 'one', true), member('c', 'two')];
    assert.deepEqual(settle(['a', 'a', 'c', 'c'], led), { a: 0, b: 2, c: 2 });
  });

  test('a server that the database does not count takes nothing and gives back what it has', () => {
    assert.deepEqual(
      shareOut({ holders: ['a', undefined], members: [] }, 'a', () => true),
      {
        take: [],
        excess: 1,
      },
    );
  });
});
