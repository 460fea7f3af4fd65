import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ManualClock } from './clock.ts';
import type { Clock } from './clock.ts';
import { RateLimiter } from './rate-limiter.ts';

const windows = [{ seconds: 10, quota: () => 2 }];

describe('the rate limiter', () => {
  test('does not count a request that it refuses', () => {
    const clock = new ManualClock();
    const limiter = new RateLimiter(clock);
    for (let call = 0; call < 5; call += 1) limiter.acquire('k', { windows });
    assert.deepEqual(limiter.acquire('k', { windows }).exceeded, { quota: 2, used: 2, secondsLeft: 10 });
    clock.advance(10_000);
    assert.equal(limiter.acquire('k', { windows }).exceeded, undefined);
  });

  test('counts on monotonic time: setting the system time opens no window and keeps none closed', () => {
    let [now, elapsed] = [Date.UTC(2026), 0];
    const clock: Clock = { now: () => now, monotonic: () => elapsed };
    const limiter = new RateLimiter(clock);
    for (let call = 0; call < 2; call += 1) limiter.acquire('k', { windows });
    for (const step of [86_400_000, -200_000_000]) {
      now += step;
      assert.notEqual(limiter.acquire('k', { windows }).exceeded, undefined);
    }
    elapsed = 10_000;
    assert.equal(limiter.acquire('k', { windows }).exceeded, undefined);
  });

  test('keeps a key in memory while one of its requests is open', () => {
    const clock = new ManualClock();
    const limiter = new RateLimiter(clock);
    const open = limiter.acquire('open', { windows, maxOpen: 1 });
    limiter.acquire('done', { windows, maxOpen: 1 }).release();
    clock.advance(10_000);
    assert.equal(limiter.acquire('open', { windows, maxOpen: 1 }).exceeded, 'open');
    assert.equal(limiter.size, 1);
    open.release();
    clock.advance(10_000);
    limiter.acquire('other', { windows });
    assert.equal(limiter.size, 1);
  });
});
