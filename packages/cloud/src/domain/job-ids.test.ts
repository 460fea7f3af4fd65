import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { checkProperty, seed } from '../../../testing/src/property-testing.ts';
import { ManualClock, systemClock } from '../support/clock.ts';
import { newJobId, JobSequence, newLeaseToken, seqFromJobId } from './job-ids.ts';

describe('the numbers of jobs', () => {
  test('count up, however many are made in a millisecond', () => {
    const clock = new ManualClock(Date.UTC(2026, 6, 1));
    const numbers = new JobSequence(clock);
    let last = 0;
    for (let n = 0; n < 20_000; n += 1) {
      if (n % 7_000 === 0) clock.advance(1);
      const next = numbers.next();
      assert.ok(Number.isSafeInteger(next) && next > last);
      last = next;
    }
  });

  test('count on when the clock is set back', () => {
    const clock = new ManualClock(Date.UTC(2026, 6, 1));
    const numbers = new JobSequence(clock);
    const before = numbers.next();
    clock.advance(-3_600_000);
    assert.ok(numbers.next() > before);
  });

  test('go on behind those of a life before, also when the clock was set back meanwhile', () => {
    const clock = new ManualClock(Date.UTC(2026, 6, 1));
    const numbers = new JobSequence(clock);
    const before = Math.max(...Array.from({ length: 5_000 }, () => numbers.next()));
    for (const step of [0, -3_600_000, 3_600_000]) {
      clock.advance(step);
      const after = new JobSequence(clock);
      after.resumeAfter(before);
      assert.ok(after.next() > before);
      const next = after.next();
      after.resumeAfter(before);
      assert.ok(after.next() > next);
    }
  });

  test('follow time, so that the oldest job has the smallest on any server', () => {
    const clock = new ManualClock(Date.UTC(2026, 6, 1));
    const [one, other] = [new JobSequence(clock), new JobSequence(clock)];
    const first = one.next();
    clock.advance(2);
    assert.ok(other.next() > first);
  });

  test('are whole numbers for decades', () => {
    const far = new ManualClock(Date.UTC(2090, 0, 1));
    assert.ok(Number.isSafeInteger(new JobSequence(far).next()));
  });
});

describe('the id of a job', () => {
  test(`carries its number, whatever that is (seed ${seed})`, async () => {
    await checkProperty(
      fc.property(fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }), fc.boolean(), (seq, sync) => {
        const id = newJobId(seq, sync);
        assert.equal(seqFromJobId(id), seq);
        assert.equal(id.startsWith('sync-'), sync);
        assert.match(id, /^(sync-)?[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}-u1$/);
      }),
    );
  });

  test('cannot be guessed from another', () => {
    assert.equal(new Set(Array.from({ length: 5_000 }, () => newJobId(1, false))).size, 5_000);
  });

  test('is safe in a path, a list and a header', () => {
    assert.match(newJobId(new JobSequence(systemClock).next(), true), /^[\w-]+$/);
  });

  test('is no other text', () => {
    const id = newJobId(5, false);
    for (const text of [
      '',
      'x',
      id.slice(1),
      `${id} `,
      `x${id}`,
      id.toUpperCase(),
      id.replace('-u1', '-u2'),
      id.replace(/-8/, '-4'),
      `sync-sync-${id}`,
      'f'.repeat(8) + id.slice(8),
      `${id}\n`,
    ])
      assert.equal(seqFromJobId(text), undefined, JSON.stringify(text));
  });
});

test('a lease is never the same twice', () => {
  const leases = Array.from({ length: 5_000 }, newLeaseToken);
  assert.equal(new Set(leases).size, leases.length);
  assert.ok(leases.every((lease) => /^[0-9a-f]{16}$/.test(lease)));
});
