import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ManualClock } from '../../support/clock.ts';
import { BerthError } from '../../support/errors.ts';
import { loadConfig } from '../../support/config/load-config.ts';
import { DEFAULT_JOB_LIMITS, enabledJobLimits, JobRateLimits } from './job-rate-limits.ts';

const none = (): number => 0;

function refused(seconds: number, text: RegExp): (error: unknown) => boolean {
  return (error) =>
    error instanceof BerthError &&
    error.code === 'rate' &&
    error.headers['retry-after'] === String(seconds) &&
    text.test(error.message);
}

function fixture(): { clock: ManualClock; limits: JobRateLimits } {
  const clock = new ManualClock();
  return {
    clock,
    limits: new JobRateLimits(clock, {
      run: { per10s: 3, concurrent: 2 },
      health: { per10s: 1, concurrent: 1 },
    }),
  };
}

describe('requests', () => {
  test('are let in up to the limit of ten seconds, and again in the next', () => {
    const { clock, limits } = fixture();
    for (let call = 0; call < 3; call += 1) limits.acquire('a', 'e', 'run', none)();
    clock.advance(4_200);
    assert.throws(
      () => limits.acquire('a', 'e', 'run', none),
      refused(6, /^too many requests: at most 3 of run in 10 s; try again in 6 s$/),
    );
    clock.advance(5_799);
    assert.throws(() => limits.acquire('a', 'e', 'run', none), refused(1, /10 s/));
    clock.advance(1);
    limits.acquire('a', 'e', 'run', none)();
  });

  test('are let in up to so many at the same time', () => {
    const { limits } = fixture();
    const left = limits.acquire('a', 'e', 'run', none);
    limits.acquire('a', 'e', 'run', none);
    assert.throws(
      () => limits.acquire('a', 'e', 'run', none),
      refused(1, /at most 2 of run at the same time/),
    );
    left();
    limits.acquire('a', 'e', 'run', none);
  });

  test('are counted for each account, endpoint and operation', () => {
    const { limits } = fixture();
    limits.acquire('a', 'e', 'health', none)();
    assert.throws(() => limits.acquire('a', 'e', 'health', none), BerthError);
    limits.acquire('b', 'e', 'health', none)();
    limits.acquire('a', 'f', 'health', none)();
    limits.acquire('a', 'e', 'run', none)();
    for (let call = 0; call < 100; call += 1) limits.acquire('a', 'e', 'unlimited', none)();
  });

  test('may be more where many workers run', () => {
    const { limits } = fixture();
    for (let call = 0; call < 200; call += 1) limits.acquire('a', 'e', 'run', () => 2)();
    assert.throws(() => limits.acquire('a', 'e', 'run', () => 2), refused(10, /at most 200 of run in 10 s/));
    limits.acquire('a', 'e', 'run', () => 3)();
  });

  test('that stay open over many windows still count as open', () => {
    const { clock, limits } = fixture();
    const [one, two] = [limits.acquire('a', 'e', 'run', none), limits.acquire('a', 'e', 'run', none)];
    for (let window = 0; window < 5; window += 1) {
      clock.advance(10_000);
      assert.throws(() => limits.acquire('a', 'e', 'run', none), refused(1, /at the same time/));
    }
    one();
    two();
    limits.acquire('a', 'e', 'run', none);
  });

  test('are let in when the clock was set back', () => {
    const { clock, limits } = fixture();
    for (let call = 0; call < 3; call += 1) limits.acquire('a', 'e', 'run', none)();
    clock.advance(-60_000);
    limits.acquire('a', 'e', 'run', none)();
  });

  test('are forgotten when their ten seconds are over, or the clock was set back', () => {
    for (const step of [10_000, -60_000]) {
      const { clock, limits } = fixture();
      for (const accountId of ['a', 'b']) limits.acquire(accountId, 'e', 'run', none)();
      assert.equal(limits.size, 2);
      clock.advance(step);
      limits.acquire('c', 'e', 'run', none)();
      assert.equal(limits.size, 1);
    }
  });
});

test('the limits are those that the hosted service publishes', () => {
  const published = {
    runsync: [2000, 400],
    run: [1000, 200],
    status: [2000, 400],
    stream: [2000, 400],
    cancel: [100, 20],
    openai: [2000, 400],
    requests: [10, 2],
  };
  for (const [operation, [per10s, concurrent]] of Object.entries(published))
    assert.deepEqual(DEFAULT_JOB_LIMITS[operation], { per10s, concurrent });
  assert.equal(DEFAULT_JOB_LIMITS['purge-queue']?.per10s, 2);
});

test('the limits are those that the operator sets, by the words of the path; one that is off is none', async () => {
  const { config } = await loadConfig({
    env: {
      BERTH_JOB_LIMITS_RUN: '5/3',
      BERTH_JOB_LIMITS_STATUS_SYNC: '7/1',
      BERTH_JOB_LIMITS_PURGE_QUEUE: 'off',
    },
  });
  const limits = enabledJobLimits(config.jobLimits);
  const { 'purge-queue': _, ...others } = DEFAULT_JOB_LIMITS;
  assert.deepEqual(limits, {
    ...others,
    run: { per10s: 5, concurrent: 3 },
    'status-sync': { per10s: 7, concurrent: 1 },
  });
  const counting = new JobRateLimits(new ManualClock(), limits);
  for (let call = 0; call < 100; call += 1) counting.acquire('a', 'e', 'purge-queue', none);
  for (let call = 0; call < 5; call += 1) counting.acquire('a', 'e', 'run', none)();
  assert.throws(() => counting.acquire('a', 'e', 'run', none), refused(10, /at most 5 of run in 10 s/));
});
