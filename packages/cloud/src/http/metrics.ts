import type { FastifyInstance } from 'fastify';
import { collectDefaultMetrics, Counter, Histogram, Registry } from 'prom-client';
import type { WebhookCounts } from '../queue/webhooks/webhook-sender.ts';

/** How often the lag of the event loop is looked at. Each look wakes the process, which has nothing else to do where nothing happens. */
const EVENT_LOOP_LAG_INTERVAL_MS = 100;

/** What each server shows at /metrics. */
const registries = new WeakMap<FastifyInstance, Registry>();

/** What Prometheus reads at /metrics: the process, and every request by its route, method and status. */
export function createMetrics(): { registry: Registry; observe(app: FastifyInstance): void } {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: EVENT_LOOP_LAG_INTERVAL_MS });
  const requests = new Histogram({
    name: 'berth_http_request_seconds',
    help: 'Time to answer HTTP requests',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100],
    registers: [registry],
  });
  return {
    registry,
    observe: (app) => {
      registries.set(app, registry);
      app.addHook('onResponse', async (request, reply) => {
        // The pattern, not the path: ids would make a series of each request.
        requests.observe(
          { method: request.method, route: request.routeOptions.url ?? 'none', status: reply.statusCode },
          reply.elapsedTime / 1000,
        );
      });
    },
  };
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

/** Shows at /metrics what became of webhooks on this server. */
export function exposeWebhookCounts(app: FastifyInstance, counts: () => WebhookCounts): void {
  const registry = registries.get(app);
  if (registry === undefined) return;
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
