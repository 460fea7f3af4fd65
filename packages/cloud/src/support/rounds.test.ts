import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { Rounds } from './rounds.ts';

function stage(): {
  rounds: Rounds;
  looks: string[];
  end: () => void;
  fail: (error: Error) => void;
  errors: unknown[];
  close: () => void;
} {
  const looks: string[] = [];
  const errors: unknown[] = [];
  const pending: { resolve: () => void; reject: (error: Error) => void }[] = [];
  let open = true;
  const rounds = new Rounds({
    look: (id) => {
      looks.push(id);
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      pending.push({ resolve, reject });
      return promise;
    },
    may: () => open,
    onError: (error) => errors.push(error),
  });
  return {
    rounds,
    looks,
    errors,
    end: () => pending.shift()?.resolve(),
    fail: (error) => pending.shift()?.reject(error),
    close: () => (open = false),
  };
}

test('one look at a time for each, side by side for different ones', async () => {
  const { rounds, looks, end } = stage();
  rounds.ask('a');
  rounds.ask('a');
  rounds.ask('b');
  assert.deepEqual(looks, ['a', 'b']);
  end();
  await turn();
  assert.deepEqual(looks, ['a', 'b', 'a'], 'what happened meanwhile is reason for another');
  end();
  end();
  await rounds.allOver();
  assert.ok(!rounds.isUnderWay('a'));
  assert.equal(looks.length, 3);
});

test('a look that fails is told, and the next one comes all the same', async () => {
  const { rounds, looks, errors, fail, end } = stage();
  rounds.ask('a');
  rounds.ask('a');
  fail(new Error('no'));
  await turn();
  assert.deepEqual([looks, errors.length], [['a', 'a'], 1]);
  end();
  await rounds.over('a');
});

test('nothing is looked at that may not be, also where it was asked for before', async () => {
  const { rounds, looks, end, close } = stage();
  rounds.ask('a');
  rounds.ask('a');
  close();
  end();
  await rounds.over('a');
  rounds.ask('b');
  assert.deepEqual(looks, ['a']);
});
