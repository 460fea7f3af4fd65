import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Histogram, Registry } from 'prom-client';
import { SeriesHistogram } from './series-histogram.ts';

test('reads like a histogram of prom-client', async () => {
  const [name, help, buckets] = ['seconds', 'Time to answer', [0.001, 0.1, 3]] as const;
  const [ours, theirs] = [new Registry(), new Registry()];
  const histogram = new SeriesHistogram(name, help, buckets).register(ours);
  const peer = new Histogram({
    name,
    help,
    buckets: [...buckets],
    labelNames: ['route', 'status'],
    registers: [theirs],
  });
  for (const labels of [
    { route: '/v2/:id', status: 200 },
    { route: '/"quoted"\\', status: 404 },
  ]) {
    const [series, peerSeries] = [histogram.series(labels), peer.labels(labels)];
    for (const value of [0, 0.001, 0.0010001, 0.05, 0.1, 2.5, 3, 3.5, 100]) {
      series.observe(value);
      peerSeries.observe(value);
    }
  }
  assert.equal(await ours.metrics(), await theirs.metrics());
  const json = async (registry: Registry): Promise<unknown[]> =>
    (await registry.getMetricsAsJSON()).map(({ name, type, values }) => ({
      name,
      type,
      values: values.map(({ labels, value }) => ({ labels, value })),
    }));
  assert.deepEqual(await json(ours), await json(theirs));
});
