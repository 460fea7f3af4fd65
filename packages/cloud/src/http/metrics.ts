import type { FastifyInstance } from 'fastify';
import { collectDefaultMetrics, Histogram, Registry } from 'prom-client';

/** What Prometheus reads at /metrics: the process, and every request by its route, method and status. */
export function createMetrics(): { registry: Registry; observe(app: FastifyInstance): void } {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const requests = new Histogram({
    name: 'berth_http_request_seconds',
    help: 'Time to answer HTTP requests',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100],
    registers: [registry],
  });
  return {
    registry,
    observe: (app) =>
      app.addHook('onResponse', async (request, reply) => {
        // The pattern, not the path: ids would make a series of each request.
        requests.observe({ method: request.method, route: request.routeOptions.url ?? 'none', status: reply.statusCode }, reply.elapsedTime / 1000);
      }),
  };
}
