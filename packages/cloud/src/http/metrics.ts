import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client';
import type { WebhookCounts } from '../queue/webhooks/webhook-sender.ts';
import { RequestHistogram } from './request-histogram.ts';
import type { Series } from './request-histogram.ts';

/** How often the lag of the event loop is measured. Each measurement wakes the process, even an idle one. */
const EVENT_LOOP_LAG_INTERVAL_MS = 100;

/** What Prometheus reads at /metrics: the process, and every request by its route, method and status. */
export class HttpMetrics {
  readonly registry = new Registry();
  readonly #requests: RequestHistogram;
  /** The series of each route, by method and status, so that it is not looked up again for every request. */
  readonly #series = new Map<string, Map<string, Series>>();

  constructor() {
    collectDefaultMetrics({
      register: this.registry,
      eventLoopMonitoringPrecision: EVENT_LOOP_LAG_INTERVAL_MS,
    });
    this.#requests = new RequestHistogram(
      this.registry,
      'berth_http_request_seconds',
      'Time to answer HTTP requests',
      [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100],
    );
  }

  observe(method: string, route: string, status: number, seconds: number): void {
    let ofRoute = this.#series.get(route);
    if (ofRoute === undefined) {
      ofRoute = new Map();
      this.#series.set(route, ofRoute);
    }
    const key = `${method} ${status}`;
    let series = ofRoute.get(key);
    if (series === undefined) {
      series = this.#requests.series({ method, route, status });
      ofRoute.set(key, series);
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

/** One limit of an account and how much of it is used. */
export interface LimitRatio {
  account: string;
  limit: string;
  ratio: number;
}

/** Shows at /metrics how much of the limits that are set is used. */
export function exposeQuotaUsage(registry: Registry, ratios: () => Promise<LimitRatio[]>): void {
  const gauge = new Gauge({
    name: 'berth_quota_used_ratio',
    help: 'How much of a limit is used, by account; account "" is the installation',
    labelNames: ['account', 'limit'],
    registers: [registry],
    collect: async () => {
      const measured = await ratios();
      gauge.reset();
      for (const { account, limit, ratio } of measured) gauge.set({ account, limit }, ratio);
    },
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
