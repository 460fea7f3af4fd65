import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startOtlpReceiver } from '../../../../testing/src/otlp-receiver.ts';
import { waitFor } from '../../../../testing/src/wait-for.ts';
import { createLog } from '../../support/log.ts';
import type { FinishedSpan } from './otlp-json.ts';
import { SpanExporter } from './span-exporter.ts';

const span = (number: number): FinishedSpan => ({
  traceId: '1'.repeat(32),
  spanId: number.toString(16).padStart(16, '0'),
  parentSpanId: undefined,
  sampled: true,
  startedAt: Date.UTC(2026, 0, 1),
  endedAt: Date.UTC(2026, 0, 1) - 5,
  name: 'job run',
  kind: 'consumer',
  attributes: { text: 'x', whole: 3, part: 0.5 },
});

function exporter(url: string): SpanExporter {
  return new SpanExporter({
    url: `${url}/v1/traces`,
    headers: {},
    resource: { 'service.name': 'berth' },
    delayMs: 1,
    log: createLog({ level: 'silent', format: 'json' }),
  });
}

test('spans are sent in batches, also after the receiver was busy', async () => {
  const receiver = await startOtlpReceiver();
  receiver.refuse(503, 1);
  const sent = exporter(receiver.url);
  for (let number = 1; number <= 1_000; number += 1) sent.add(span(number));
  await waitFor('all spans', () => receiver.spans.length === 1_000);
  await sent.close();
  assert.deepEqual(receiver.problems, []);
  assert.deepEqual(sent.counts, { exported: 1_000, dropped: 0 });
  assert.deepEqual(receiver.spans[0]?.attributes, { text: 'x', whole: 3, part: 0.5 });
  receiver.close();
});

test('spans are dropped, not kept, where the receiver refuses them or is not there', async () => {
  const receiver = await startOtlpReceiver();
  receiver.refuse(400, 1);
  const refused = exporter(receiver.url);
  refused.add(span(1));
  await waitFor('it is dropped', () => refused.counts.dropped === 1);
  await refused.close();
  receiver.close();

  const gone = exporter(receiver.url);
  for (let number = 1; number <= 10_000; number += 1) gone.add(span(number));
  assert.ok(gone.counts.dropped >= 5_000, 'the queue is bounded');
  await gone.close();
  assert.deepEqual(gone.counts, { exported: 0, dropped: 10_000 });
});
