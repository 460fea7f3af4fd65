import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { throttle } from './throttle.ts';

describe('throttle', () => {
  test('runs at once, and never drops the last request', async (context) => {
    context.mock.timers.enable({ apis: ['setTimeout'] });
    let rounds = 0;
    const request = throttle(() => {
      rounds += 1;
      return Promise.resolve();
    }, 10);
    request();
    request();
    request();
    assert.equal(rounds, 1);
    await Promise.resolve();
    context.mock.timers.tick(10);
    assert.equal(rounds, 2);
    await Promise.resolve();
    context.mock.timers.tick(10);
    assert.equal(rounds, 2);
    request();
    assert.equal(rounds, 3);
  });
});
