import { Counter } from '../metrics/prometheus-client.ts';
import type { Registry } from '../metrics/prometheus-client.ts';
import type { SpanExporter } from './span-exporter.ts';

/** Shows at /metrics what became of spans. */
export function exposeTraces(registry: Registry, counts: SpanExporter['counts']): void {
  const counter = new Counter({
    name: 'berth_trace_spans_total',
    help: 'Spans that were sent to the receiver, and those that were dropped because it did not take them',
    labelNames: ['result'],
    registers: [registry],
    collect: () => {
      counter.reset();
      counter.inc({ result: 'exported' }, counts.exported);
      counter.inc({ result: 'dropped' }, counts.dropped);
    },
  });
}
