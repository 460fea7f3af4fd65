import assert from 'node:assert/strict';
import { test } from 'node:test';
import { costByGroup, costSeries, groupedRecords, lastDays } from './billing-sums.ts';

const DAY = '2026-01-01T00:00:00Z';
const NEXT = '2026-01-02T00:00:00Z';

test('costs of the whole are split by kind', () => {
  const chart = costSeries(
    [{ startTime: DAY, totalAmount: 3, podGpuAmount: 1, podDiskAmount: 0.5, serverlessCpuAmount: 1.5 }],
    true,
    [DAY],
  );
  assert.deepEqual(chart.times, [Date.parse(DAY) / 1000]);
  assert.deepEqual(
    chart.series.map(({ label, values }) => [label, values[0]]),
    [
      ['Pods', 1.5],
      ['Serverless', 1.5],
      ['Storage', 0],
      ['Clusters', 0],
    ],
  );
});

test('groups are ordered by cost, and the cheap ones are put together', () => {
  const records = Array.from({ length: 7 }, (_, index) => ({
    startTime: index === 0 ? NEXT : DAY,
    podId: `pod${index}`,
    totalAmount: index + 1,
  }));
  assert.equal(costByGroup(records, 'podId')[0]?.id, 'pod6');
  const chart = costSeries(groupedRecords(records, 'podId'), false, [DAY, NEXT]);
  assert.equal(chart.series.length, 6);
  assert.deepEqual(chart.series.find(({ label }) => label === 'others')?.values, [2, 1]);
});

test('days without usage are part of the time', () => {
  assert.deepEqual(lastDays(2, Date.parse('2026-01-02T13:00:00Z')), [
    '2026-01-01T00:00:00.000Z',
    '2026-01-02T00:00:00.000Z',
  ]);
});
