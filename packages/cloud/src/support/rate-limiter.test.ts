import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ManualClock } from './clock.ts';
import type { Clock } from './clock.ts';
import { RateLimiter } from './rate-limiter.ts';

const quotas = [() => 2];

describe('the rate limiter', () => {
  test('does not count a request that it refuses', () => {
    const clock = new ManualClock();
    const limiter = new RateLimiter(clock, [10]);
    for (let call = 0; call < 5; call += 1) limiter.acquire('k', { quotas });
    assert.deepEqual(limiter.acquire('k', { quotas }).exceeded, { quota: 2, used: 2, secondsLeft: 10 });
    clock.advance(10_000);
    assert.equal(limiter.acquire('k', { quotas }).exceeded, undefined);
  });

  test('counts on monotonic time: setting the system time opens no window and keeps none closed', () => {
    let [now, elapsed] = [Date.UTC(2026), 0];
    const clock: Clock = { now: () => now, monotonic: () => elapsed };
    const limiter = new RateLimiter(clock, [10]);
    for (let call = 0; call < 2; call += 1) limiter.acquire('k', { quotas });
    for (const step of [86_400_000, -200_000_000]) {
      now += step;
      assert.notEqual(limiter.acquire('k', { quotas }).exceeded, undefined);
    }
    elapsed = 10_000;
    assert.equal(limiter.acquire('k', { quotas }).exceeded, undefined);
  });

  test('keeps a key in memory while one of its requests is open', () => {
    const clock = new ManualClock();
    const limiter = new RateLimiter(clock, [10]);
    const open = limiter.acquire('open', { quotas, maxOpen: 1 });
    limiter.acquire('done', { quotas, maxOpen: 1 }).release();
    clock.advance(10_000);
    assert.equal(limiter.acquire('open', { quotas, maxOpen: 1 }).exceeded, 'open');
    assert.equal(limiter.size, 1);
    open.release();
    clock.advance(10_000);
    limiter.acquire('other', { quotas });
    assert.equal(limiter.size, 1);
  });
});

test('requests that other servers have counted use up the same windows', () => {
  const clock = new ManualClock();
  const servers: ((key: string, used: number) => void)[] = [];
  const limiters = [0, 1].map(
    (index) =>
      new RateLimiter(clock, [10], {
        publish: (key) => servers.forEach((add, other) => void (other !== index && add(key, 1))),
        subscribe: (add) => void servers.push(add),
      }),
  );
  const acquire = (server: number): boolean =>
    limiters[server]?.acquire('key', { quotas: [() => 5] }).exceeded === undefined;
  assert.deepEqual([0, 1, 1, 0, 1, 0, 1].map(acquire), [true, true, true, true, true, false, false]);
  clock.advance(10_000);
  assert.deepEqual([1, 0].map(acquire), [true, true]);
  // What was counted elsewhere opens a window here, whether or not there was one before.
  clock.advance(10_000);
  assert.deepEqual([0, 0, 0, 0, 0, 1, 0].map(acquire), [true, true, true, true, true, false, false]);
});
