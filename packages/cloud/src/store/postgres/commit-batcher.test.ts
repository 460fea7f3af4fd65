import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BerthError } from '../../support/errors.ts';
import { CommitBatcher } from './commit-batcher.ts';

describe('items', () => {
  test('that come together are committed together, in order, and each gets its own answer', async () => {
    const commits: (readonly number[])[] = [];
    const batch = new CommitBatcher<number, string>(async (items) => {
      commits.push(items);
      return items.map((item) => `kept ${item}`);
    }, 10);
    assert.deepEqual(await Promise.all([1, 2, 3].map((item) => batch.add(item))), [
      'kept 1',
      'kept 2',
      'kept 3',
    ]);
    assert.deepEqual(commits, [[1, 2, 3]]);
    await batch.add(4);
    assert.deepEqual(commits, [[1, 2, 3], [4]]);
  });

  test('that come while a commit is on its way share the next, no more than fit', async () => {
    const commits: (readonly number[])[] = [];
    const [began, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let inCommit = 0;
    const batch = new CommitBatcher<number, number>(async (items) => {
      inCommit += 1;
      assert.equal(inCommit, 1, 'one commit at a time');
      commits.push(items);
      began.resolve();
      await release.promise;
      inCommit -= 1;
      return items;
    }, 3);
    const first = batch.add(0);
    await began.promise;
    const rest = [1, 2, 3, 4, 5, 6, 7].map((item) => batch.add(item));
    release.resolve();
    assert.deepEqual(await Promise.all([first, ...rest]), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert.deepEqual(commits, [[0], [1, 2, 3], [4, 5, 6], [7]]);
  });

  test('that were added together stay together, however many there are', async () => {
    const commits: (readonly number[])[] = [];
    const batch = new CommitBatcher<number, number>(async (items) => {
      commits.push(items);
      return items.map((item) => -item);
    }, 3);
    assert.deepEqual(
      await Promise.all([batch.addAll([1, 2]), batch.addAll([3, 4, 5, 6]), batch.add(7), batch.addAll([])]),
      [[-1, -2], [-3, -4, -5, -6], -7, []],
    );
    assert.deepEqual(commits, [[1, 2], [3, 4, 5, 6], [7]]);
  });

  test('of a commit that fails without the database get the error; the next are committed', async () => {
    let fails = true;
    const batch = new CommitBatcher<number, number>(async (items) => {
      if (fails) throw new BerthError('unavailable', 'away');
      return items;
    }, 10);
    const outcomes = await Promise.allSettled([batch.add(1), batch.add(2)]);
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ['rejected', 'rejected'],
    );
    fails = false;
    assert.equal(await batch.add(3), 3);
  });

  test('in a commit with a failing one are committed without it', async () => {
    const batch = new CommitBatcher<number, number>(async (items) => {
      if (items.includes(2)) throw new Error('cannot be done');
      return items;
    }, 10);
    const outcomes = await Promise.allSettled([batch.add(1), batch.add(2), batch.add(3)]);
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled'],
    );
  });
});
