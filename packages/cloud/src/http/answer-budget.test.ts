import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { LightCancelSignal } from '../support/cancel-signal.ts';
import { AnswerBudget } from './answer-budget.ts';

describe('the memory of large answers', () => {
  let turns: (() => void)[];
  let budget: AnswerBudget;
  let granted: string[];
  let releases: Map<string, () => void>;

  beforeEach(() => {
    turns = [];
    granted = [];
    releases = new Map();
    budget = new AnswerBudget({ account: 20, all: 50, defer: (callback) => turns.push(callback) });
  });

  const ask = (account: string, name: string, bytes = 10, signal = new LightCancelSignal()): void =>
    void budget.acquire(account, bytes, signal).then((release) => {
      granted.push(release === undefined ? `${name} left` : name);
      if (release !== undefined) releases.set(name, release);
    });
  /** One turn of the event loop. */
  const turn = async (): Promise<void> => {
    turns.shift()?.();
    await Promise.resolve();
    await Promise.resolve();
  };
  const allTurns = async (): Promise<void> => {
    while (turns.length > 0) await turn();
  };

  test('is granted to accounts in turn, one in a turn of the event loop', async () => {
    for (const name of ['a1', 'a2', 'a3']) ask('a', name);
    ask('b', 'b1');
    const seen: number[] = [];
    while (turns.length > 0) {
      await turn();
      seen.push(granted.length);
    }
    assert.deepEqual(granted, ['a1', 'b1', 'a2']);
    assert.deepEqual(seen, [1, 2, 3, 3]);
  });

  test('never exceeds what an account may have, nor what all may have', async () => {
    for (const account of ['a', 'b', 'c', 'd'])
      for (let number = 0; number < 5; number += 1) ask(account, `${account}${number}`);
    let most = 0;
    for (let left = 20; left > 0; ) {
      await allTurns();
      most = Math.max(most, budget.bytesInFlight);
      for (const account of ['a', 'b', 'c', 'd'])
        assert.ok([...releases.keys()].filter((name) => name.startsWith(account)).length <= 2);
      const [name, release] = [...releases][0] as [string, () => void];
      releases.delete(name);
      release();
      release();
      left -= 1;
    }
    await allTurns();
    assert.deepEqual([most, budget.bytesInFlight, granted.length], [50, 0, 20]);
  });

  test('is granted alone to an answer that is larger than all of it', async () => {
    ask('a', 'huge', 1_000);
    ask('b', 'small');
    await allTurns();
    assert.deepEqual(granted, ['huge']);
    releases.get('huge')?.();
    await allTurns();
    assert.deepEqual(granted, ['huge', 'small']);
  });

  test('is not waited for by a client that has left', async () => {
    const signal = new LightCancelSignal();
    ask('a', 'one');
    ask('a', 'two');
    ask('a', 'gone', 10, signal);
    ask('a', 'four');
    await allTurns();
    signal.abort();
    await turn();
    releases.get('one')?.();
    await allTurns();
    assert.deepEqual(granted, ['one', 'two', 'gone left', 'four']);
  });
});
