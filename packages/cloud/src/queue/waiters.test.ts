import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Waiters } from './waiters.ts';

const LONG_MS = 60_000;

/** Whether a wait is over, without awaiting it. */
async function isOver(wait: Promise<void>): Promise<boolean> {
  return Promise.race([
    wait.then(() => true),
    new Promise<boolean>((resolve) => setImmediate(() => resolve(false))),
  ]);
}

describe('a waiter', () => {
  test('is woken by its own key, together with the others on it, and by nothing else', async () => {
    const waiters = new Waiters<string>();
    const [one, two, other] = [
      waiters.wait('e', 'a', LONG_MS),
      waiters.wait('e', 'a', LONG_MS),
      waiters.wait('e', 'b', LONG_MS),
    ];
    waiters.wake('e', 'unknown');
    assert.deepEqual(await Promise.all([one, two, other].map(isOver)), [false, false, false]);
    waiters.wake('e', 'a');
    assert.deepEqual(await Promise.all([one, two, other].map(isOver)), [true, true, false]);
    waiters.wakeAll();
    await other;
  });

  test('is woken at its timeout', async (context) => {
    context.mock.timers.enable({ apis: ['setTimeout'] });
    const wait = new Waiters<string>().wait('e', 'a', 30);
    context.mock.timers.tick(29);
    assert.equal(await isOver(wait), false);
    context.mock.timers.tick(1);
    assert.equal(await isOver(wait), true);
  });

  test('ends when its signal is cancelled, also if it was before the wait', async () => {
    const waiters = new Waiters<string>();
    const leaving = new AbortController();
    const wait = waiters.wait('e', 'a', LONG_MS, leaving.signal);
    leaving.abort();
    await wait;
    await waiters.wait('e', 'a', LONG_MS, leaving.signal);
  });

  test('may wait again right after it was woken', async () => {
    const waiters = new Waiters<string>();
    let rounds = 0;
    const waiting = (async () => {
      for (; rounds < 3; rounds += 1) await waiters.wait('e', 'a', LONG_MS);
    })();
    while (rounds < 3) {
      waiters.wake('e', 'a');
      await new Promise((resolve) => setImmediate(resolve));
    }
    await waiting;
  });

  test('is woken with its endpoint', async () => {
    const waiters = new Waiters<string>();
    const [mine, other] = [waiters.wait('e1', '7', LONG_MS), waiters.wait('e2', '7', LONG_MS)];
    waiters.wakeEndpoint('e1');
    assert.deepEqual(await Promise.all([mine, other].map(isOver)), [true, false]);
    waiters.wakeAll();
    await other;
  });
});
