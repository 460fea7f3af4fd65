import type { WebhookCounts } from '../queue/webhooks/webhook-sender.ts';
import { Counter, Gauge, Registry } from '../telemetry/metrics/prometheus-client.ts';
import { SeriesHistogram } from '../telemetry/metrics/series-histogram.ts';
import type { Series } from '../telemetry/metrics/series-histogram.ts';
import { notReadyReason } from './health.routes.ts';
import type { MetricsText } from './health.routes.ts';

/** How often the lag of the event loop is measured. Each measurement wakes the process, even an idle one. */
const EVENT_LOOP_LAG_INTERVAL_MS = 100;
const REQUEST_BOUNDS_SECONDS = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100];

/** What answered a request: Berth itself, what the gateway forwards to, or S3. */
export type RequestKind = 'berth' | 'worker' | 'pod' | 's3';

/**
 * What Prometheus reads at /metrics: the process, and every request. Those to Berth by route, method and
 * status; those that workers and pods answer by the class of the status, since any may come from there.
 */
export class HttpMetrics implements MetricsText {
  readonly registry = new Registry();
  readonly #requests = new SeriesHistogram(
    'berth_http_request_seconds',
    'Time to answer HTTP requests',
    REQUEST_BOUNDS_SECONDS,
  ).register(this.registry);
  readonly #forwarded = new SeriesHistogram(
    'berth_gateway_request_seconds',
    'Time to answer requests that went to workers of load balancing endpoints and to ports of pods',
    REQUEST_BOUNDS_SECONDS,
  ).register(this.registry);
  readonly #s3 = new SeriesHistogram(
    'berth_s3_request_seconds',
    'Time to answer S3 requests, with their bodies',
    REQUEST_BOUNDS_SECONDS,
  ).register(this.registry);
  readonly #holds = new SeriesHistogram(
    'berth_gateway_hold_seconds',
    'Time that requests waited for a worker; those that found one at once are not counted',
    REQUEST_BOUNDS_SECONDS,
  )
    .register(this.registry)
    .series({});
  /** The series of each route, by method and status, so that it is not looked up again for every request. */
  readonly #series = new Map<string, Map<string, Series>>();

  #processFigures: Promise<void> | undefined;

  get contentType(): string {
    return this.registry.contentType;
  }

  /** Process metrics are collected from the first read on, so that a server whose metrics are unused does not. */
  async read(): Promise<string> {
    // oxlint-disable-next-line no-restricted-imports -- with the first read, not with the start
    this.#processFigures ??= import('prom-client').then(({ collectDefaultMetrics }) =>
      collectDefaultMetrics({
        register: this.registry,
        eventLoopMonitoringPrecision: EVENT_LOOP_LAG_INTERVAL_MS,
      }),
    );
    await this.#processFigures;
    return this.registry.metrics();
  }

  observe(method: string, route: string, status: number, seconds: number, kind: RequestKind = 'berth'): void {
    let ofRoute = this.#series.get(route);
    if (ofRoute === undefined) {
      ofRoute = new Map();
      this.#series.set(route, ofRoute);
    }
    const key =
      kind === 'berth' || kind === 's3' ? `${method} ${status}` : `${kind} ${Math.trunc(status / 100)}`;
    let series = ofRoute.get(key);
    if (series === undefined) {
      series = this.#newSeries(method, route, status, kind);
      ofRoute.set(key, series);
    }
    series.observe(seconds);
  }

  /** A request waited for a worker. */
  observeHold(seconds: number): void {
    this.#holds.observe(seconds);
  }

  #newSeries(method: string, route: string, status: number, kind: RequestKind): Series {
    if (kind === 'berth') return this.#requests.series({ method, route, status });
    if (kind === 's3') return this.#s3.series({ method, status });
    return this.#forwarded.series({ target: kind, status: `${Math.trunc(status / 100)}xx` });
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

/** Shows whether /readyz answers 200. */
export function exposeReadiness(registry: Registry, ready: () => Promise<void>): void {
  const gauge: Gauge = new Gauge({
    name: 'berth_ready',
    help: '1 while the database answers and takes writes',
    registers: [registry],
    collect: async () => gauge.set((await notReadyReason(ready())) === undefined ? 1 : 0),
  });
}

/** Shows how many requests wait for a worker now. */
export function exposeHeldRequests(registry: Registry, held: () => number): void {
  const gauge: Gauge = new Gauge({
    name: 'berth_gateway_held_requests',
    help: 'Requests that wait for a worker of a load balancing endpoint',
    registers: [registry],
    collect: () => gauge.set(held()),
  });
}

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
