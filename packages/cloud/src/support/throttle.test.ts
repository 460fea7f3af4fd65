import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { throttle } from './throttle.ts';

describe('work in rounds', () => {
  test('is done at once, and the last wish is never forgotten', async (context) => {
    context.mock.timers.enable({ apis: ['setTimeout'] });
    let rounds = 0;
    const wish = throttle(() => {
      rounds += 1;
      return Promise.resolve();
    }, 10);
    wish();
    wish();
    wish();
    assert.equal(rounds, 1);
    await Promise.resolve();
    context.mock.timers.tick(10);
    assert.equal(rounds, 2);
    await Promise.resolve();
    context.mock.timers.tick(10);
    assert.equal(rounds, 2);
    wish();
    assert.equal(rounds, 3);
  });
});
