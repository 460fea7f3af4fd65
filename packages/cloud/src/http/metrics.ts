import { collectDefaultMetrics, Counter, Histogram, Registry } from 'prom-client';
import type { WebhookCounts } from '../queue/webhooks/webhook-sender.ts';

/** How often the lag of the event loop is measured. Each measurement wakes the process, even an idle one. */
const EVENT_LOOP_LAG_INTERVAL_MS = 100;

/** What Prometheus reads at /metrics: the process, and every request by its route, method and status. */
export class HttpMetrics {
  readonly registry = new Registry();
  readonly #requests: Histogram<'method' | 'route' | 'status'>;
  /** The series of each combination of labels, so that it is not looked up again for every request. */
  readonly #series = new Map<string, Histogram.Internal<'method' | 'route' | 'status'>>();

  constructor() {
    collectDefaultMetrics({
      register: this.registry,
      eventLoopMonitoringPrecision: EVENT_LOOP_LAG_INTERVAL_MS,
    });
    this.#requests = new Histogram({
      name: 'berth_http_request_seconds',
      help: 'Time to answer HTTP requests',
      labelNames: ['method', 'route', 'status'],
      buckets: [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100],
      registers: [this.registry],
    });
  }

  observe(method: string, route: string, status: number, seconds: number): void {
    const key = `${method} ${route} ${status}`;
    let series = this.#series.get(key);
    if (series === undefined) {
      series = this.#requests.labels({ method, route, status });
      this.#series.set(key, series);
    }
    series.observe(seconds);
  }
}

const WEBHOOK_COUNTERS: Record<keyof WebhookCounts, { name: string; help: string }> = {
  attempts: {
    name: 'berth_webhook_attempts_total',
    help: 'Attempts to deliver webhooks, with an answer or without',
  },
  delivered: { name: 'berth_webhooks_delivered_total', help: 'Webhooks that their receiver accepted' },
  failed: {
    name: 'berth_webhooks_failed_total',
    help: 'Webhooks that were given up after their last attempt',
  },
};

/** Shows the webhook deliveries of this server at /metrics. */
export function exposeWebhookCounts(registry: Registry, counts: () => WebhookCounts): void {
  for (const [count, { name, help }] of Object.entries(WEBHOOK_COUNTERS)) {
    const counter = new Counter({
      name,
      help,
      registers: [registry],
      collect: () => {
        counter.reset();
        counter.inc(counts()[count as keyof WebhookCounts]);
      },
    });
  }
}
