import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { checkProperty } from '../../../../testing/src/property-testing.ts';
import { ManualClock } from '../../support/clock.ts';
import { BerthError } from '../../support/errors.ts';
import { RestRateLimits } from './rest-rate-limits.ts';
import type { RestRateLimit } from './rest-rate-limits.ts';

const minute = (quota: number): RestRateLimit => ({ name: 'minute', seconds: 60, quota });
const hour = (quota: number): RestRateLimit => ({ name: 'hour', seconds: 3600, quota });

/** True where it was let through; what the answer would carry either way. */
function call(limiter: RestRateLimits, key: string): { allowed: boolean; headers: Record<string, string> } {
  try {
    return { allowed: true, headers: limiter.consume(key) };
  } catch (error) {
    assert.ok(error instanceof BerthError && error.code === 'rate', String(error));
    return { allowed: false, headers: error.headers };
  }
}

describe('the rate limit', () => {
  test('counts down in every window, refuses when one is used up, and opens again', () => {
    const clock = new ManualClock();
    const limiter = new RestRateLimits([minute(2), hour(3)], clock);
    assert.deepEqual(limiter.consume('k'), {
      ratelimit: '"minute";r=1;t=60, "hour";r=2;t=3600',
      'ratelimit-policy': '"minute";q=2;w=60, "hour";q=3;w=3600',
    });
    clock.advance(10_500);
    assert.equal(limiter.consume('k')['ratelimit'], '"minute";r=0;t=50, "hour";r=1;t=3590');
    const refused = call(limiter, 'k');
    assert.deepEqual(
      [refused.allowed, refused.headers['retry-after'], refused.headers['ratelimit']],
      [false, '50', '"minute";r=0;t=50, "hour";r=1;t=3590'],
    );
    assert.equal(call(limiter, 'other').allowed, true);
    clock.advance(49_500);
    assert.equal(limiter.consume('k')['ratelimit'], '"minute";r=1;t=60, "hour";r=0;t=3540');
    const again = call(limiter, 'k');
    assert.equal(again.allowed, false);
    assert.equal(again.headers['retry-after'], '3540');
  });

  test('never lets more through than its quota, for any key and any rhythm', async () => {
    const steps = fc.array(
      fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.oneof(fc.nat(2000), fc.nat(90_000), fc.nat(4_000_000))),
      { maxLength: 150 },
    );
    await checkProperty(
      fc.property(
        fc.integer({ min: 1, max: 6 }),
        fc.integer({ min: 1, max: 20 }),
        steps,
        (perMinute, perHour, calls) => {
          const clock = new ManualClock();
          const windows = [minute(perMinute), hour(perHour)];
          const limiter = new RestRateLimits(windows, clock);
          const passed = new Map<string, { startedAt: number; used: number }[]>();
          for (const [key, pause] of calls) {
            clock.advance(pause);
            const { allowed, headers } = call(limiter, key);
            const now = clock.now();
            const counts = (passed.get(key) ?? windows.map(() => ({ startedAt: now, used: 0 }))).map(
              (count, index) =>
                now - count.startedAt >= windows[index]!.seconds * 1000 ? { startedAt: now, used: 0 } : count,
            );
            passed.set(key, counts);
            assert.equal(
              allowed,
              counts.every((count, index) => count.used < windows[index]!.quota),
            );
            if (allowed) counts.forEach((count) => (count.used += 1));
            counts.forEach((count, index) => assert.ok(count.used <= windows[index]!.quota));
            assert.doesNotMatch(headers['ratelimit'] ?? '', /-/);
          }
        },
      ),
    );
  });

  test('accepts a request after the time in Retry-After', async () => {
    await checkProperty(
      fc.property(
        fc.integer({ min: 1, max: 5 }),
        fc.array(fc.nat(30_000), { maxLength: 40 }),
        (quota, pauses) => {
          const clock = new ManualClock();
          const limiter = new RestRateLimits([minute(quota)], clock);
          for (const pause of pauses) {
            clock.advance(pause);
            const { allowed, headers } = call(limiter, 'k');
            if (allowed) continue;
            const seconds = Number(headers['retry-after']);
            assert.ok(Number.isInteger(seconds) && seconds >= 1 && seconds <= 60);
            clock.advance(seconds * 1000);
            assert.equal(call(limiter, 'k').allowed, true);
          }
        },
      ),
    );
  });

  test('starts anew where the clock was set back, instead of closing for as long', () => {
    const clock = new ManualClock();
    const limiter = new RestRateLimits([minute(1)], clock);
    assert.equal(call(limiter, 'k').allowed, true);
    clock.advance(-86_400_000);
    assert.equal(call(limiter, 'k').allowed, true);
    assert.equal(call(limiter, 'k').allowed, false);
  });
});
