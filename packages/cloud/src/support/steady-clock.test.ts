import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SLEW_RATE, SteadyClock } from './steady-clock.ts';

const HOUR_MS = 3_600_000;

function machine(): {
  source: { now(): number; monotonic(): number };
  pass(milliseconds: number): void;
  set(by: number): void;
} {
  let wall = Date.UTC(2026, 0, 1);
  let monotonic = 5_000;
  return {
    source: { now: () => wall, monotonic: () => monotonic },
    pass: (milliseconds) => {
      wall += milliseconds;
      monotonic += milliseconds;
    },
    set: (by) => (wall += by),
  };
}

for (const by of [HOUR_MS, -HOUR_MS]) {
  test(`a clock that is set by ${by / 1000} s is noticed once, and time goes on as before`, () => {
    const { source, pass, set } = machine();
    const clock = new SteadyClock(source);
    const began = clock.now();
    pass(1_000);
    assert.equal(clock.observe(clock.wall()), 0);
    set(by);
    assert.equal(clock.observe(clock.wall()), by);
    pass(60_000);
    assert.equal(clock.observe(clock.wall()), 0);
    assert.ok(Math.abs(clock.now() - began - 61_000) <= 60_000 * SLEW_RATE + 1);
    assert.equal(clock.wall() - began, by + 61_000);
  });

  test(`time never goes back, and reaches a clock that was set by ${by / 1000} s after days`, () => {
    const { source, pass, set } = machine();
    const clock = new SteadyClock(source);
    set(by);
    clock.observe(clock.wall());
    let last = clock.now();
    for (let hour = 0; hour < 200; hour += 1) {
      assert.ok(Math.abs(clock.ahead) > 1_000);
      pass(HOUR_MS);
      assert.equal(clock.observe(clock.wall()), 0);
      const now = clock.now();
      assert.ok(Math.abs(now - last - HOUR_MS) <= HOUR_MS * SLEW_RATE + 1);
      last = now;
    }
    pass(HOUR_MS);
    assert.equal(clock.now(), clock.wall());
  });
}

test('drift of less than two seconds is no step', () => {
  const { source, pass, set } = machine();
  const clock = new SteadyClock(source);
  for (let second = 0; second < 10; second += 1) {
    pass(1_000);
    set(100);
    assert.equal(clock.observe(clock.wall()), 0);
  }
});

test('a clock that is set where nothing depends on it is no step of the reference', () => {
  const { source, pass, set } = machine();
  const clock = new SteadyClock(source);
  set(HOUR_MS);
  clock.observe(clock.wall());
  clock.set(clock.now() + clock.ahead);
  pass(10);
  assert.equal(clock.observe(clock.wall()), 0);
  assert.equal(clock.now(), clock.wall());
});
