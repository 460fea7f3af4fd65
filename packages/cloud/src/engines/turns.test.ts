import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Turns } from './turns.ts';

describe('turns', () => {
  test('work on one thing is done in order, on others meanwhile', async () => {
    const turns = new Turns();
    const done: string[] = [];
    const first = Promise.withResolvers<void>();
    const one = turns.run('a', async () => {
      await first.promise;
      done.push('a1');
      throw new Error('failed');
    });
    const two = turns.run('a', () => Promise.resolve(done.push('a2')));
    await turns.run('b', () => Promise.resolve(done.push('b1')));
    first.resolve();
    await assert.rejects(one, /failed/);
    await two;
    assert.deepEqual(done, ['b1', 'a1', 'a2']);
  });

  test('one can wait until all is done', async () => {
    const turns = new Turns();
    let isDone = false;
    void turns.run('a', async () => {
      await Promise.resolve();
      isDone = true;
    });
    await turns.idle('a');
    assert.equal(isDone, true);
    await turns.idle('unknown');
    await turns.allIdle();
  });
});
