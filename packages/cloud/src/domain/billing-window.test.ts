import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BUCKET_SIZES, bucketAfter, bucketsBetween, bucketStart } from './time-buckets.ts';
import { resolveWindow } from './billing-window.ts';
import type { WindowQuery } from './billing-window.ts';

const NOW = Date.UTC(2026, 5, 17, 13, 45, 30); // a Wednesday
const shown = (wish: WindowQuery): [string, string, number] => {
  const { start, end, buckets } = resolveWindow(wish, NOW);
  return [new Date(start * 1000).toISOString(), new Date(end * 1000).toISOString(), buckets.length];
};

describe('the window of a history', () => {
  test('is the last thirty days by default, widened to whole buckets', () => {
    assert.deepEqual(shown({ bucketSize: 'day' }), [
      '2026-05-18T00:00:00.000Z',
      '2026-06-18T00:00:00.000Z',
      31,
    ]);
    assert.deepEqual(shown({ bucketSize: 'hour' }), [
      '2026-05-18T13:00:00.000Z',
      '2026-06-17T14:00:00.000Z',
      721,
    ]);
    assert.deepEqual(shown({ bucketSize: 'week' }), [
      '2026-05-18T00:00:00.000Z',
      '2026-06-22T00:00:00.000Z',
      5,
    ]);
    assert.deepEqual(shown({ bucketSize: 'month' }), [
      '2026-05-01T00:00:00.000Z',
      '2026-07-01T00:00:00.000Z',
      2,
    ]);
    assert.deepEqual(shown({ bucketSize: 'year' }), [
      '2026-01-01T00:00:00.000Z',
      '2027-01-01T00:00:00.000Z',
      1,
    ]);
  });

  test('keeps edges that are on a bucket, and understands offsets', () => {
    assert.deepEqual(
      shown({ bucketSize: 'day', startTime: '2026-01-01T00:00:00Z', endTime: '2026-01-03T00:00:00Z' }),
      ['2026-01-01T00:00:00.000Z', '2026-01-03T00:00:00.000Z', 2],
    );
    assert.deepEqual(
      shown({ bucketSize: 'day', startTime: '2026-01-01T01:30:00+02:00', endTime: '2026-01-03T00:00:00.5Z' }),
      ['2025-12-31T00:00:00.000Z', '2026-01-04T00:00:00.000Z', 4],
    );
    assert.deepEqual(
      shown({ bucketSize: 'day', startTime: '2026-01-01T00:00:00Z', endTime: '2026-01-01T00:00:00Z' }),
      ['2026-01-01T00:00:00.000Z', '2026-01-02T00:00:00.000Z', 1],
    );
    assert.deepEqual(shown({ bucketSize: 'day', endTime: '2026-01-31T00:00:00Z' }), [
      '2026-01-01T00:00:00.000Z',
      '2026-01-31T00:00:00.000Z',
      30,
    ]);
  });

  test('may be the last buckets, the present one included', () => {
    assert.deepEqual(shown({ bucketSize: 'hour', lastN: 2 }), [
      '2026-06-17T12:00:00.000Z',
      '2026-06-17T14:00:00.000Z',
      2,
    ]);
    assert.deepEqual(shown({ bucketSize: 'month', lastN: 12 }), [
      '2025-07-01T00:00:00.000Z',
      '2026-07-01T00:00:00.000Z',
      12,
    ]);
    assert.deepEqual(shown({ bucketSize: 'year', lastN: 10_000 })[0], '1970-01-01T00:00:00.000Z');
  });

  test('refuses what makes no sense, and says why', () => {
    const refused = (wish: Omit<WindowQuery, 'bucketSize'> & Partial<WindowQuery>, why: RegExp): void =>
      assert.throws(() => resolveWindow({ bucketSize: 'day', ...wish }, NOW), { code: 'rule', message: why });
    refused(
      { startTime: '2026-02-01T00:00:00Z', endTime: '2026-01-01T00:00:00Z' },
      /endTime 2026-01-01T00:00:00Z is before startTime 2026-02-01/,
    );
    refused({ startTime: '2027-02-01T00:00:00Z' }, /is in the future/);
    refused({ lastN: 3, startTime: '2026-02-01T00:00:00Z' }, /not both/);
    refused({ lastN: 0 }, /at least 1/);
    refused({ lastN: 10_001 }, /at most 10000/);
    refused({ startTime: 'yesterday' }, /must be an instant/);
    refused({ startTime: '1969-02-01T00:00:00Z' }, /between 1970/);
    refused(
      { bucketSize: 'hour', startTime: '2020-02-01T00:00:00Z' },
      /buckets of one hour, and at most 10000/,
    );
  });
});

test('buckets follow each other without a gap, over leap days and years', () => {
  const [from, to] = [Date.UTC(2023, 10, 3) / 1000, Date.UTC(2029, 2, 9) / 1000];
  for (const size of BUCKET_SIZES) {
    if (size === 'hour') continue;
    const buckets = bucketsBetween(size, bucketStart(size, from), to);
    buckets.forEach(({ start, end }, index) => {
      assert.equal(bucketStart(size, start), start);
      assert.equal(bucketStart(size, end - 1), start);
      assert.equal(buckets[index + 1]?.start ?? end, end);
      assert.equal(bucketAfter(size, end, -1), start);
    });
  }
});
