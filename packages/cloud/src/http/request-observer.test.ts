import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { createLog } from '../support/log.ts';
import { EndpointRouter } from './endpoint-router.ts';
import type { EndpointRouterDeps } from './endpoint-router.ts';
import { FastPathRoutes } from './fast-path/fast-path-routes.ts';
import { FastPathServer } from './fast-path/fast-path-server.ts';
import type { JobRoutes } from './jobs/jobs.routes.ts';
import { HttpMetrics } from './metrics.ts';
import { sendJson } from './raw-http.ts';
import { RequestObserver } from './request-observer.ts';
import { EventBus } from '../support/event-bus.ts';
import { OpenAccesses } from '../auth/open-access.ts';
import { systemClock } from '../support/clock.ts';

type CreateServer = (deps: EndpointRouterDeps) => Server;

const paths: Record<string, CreateServer> = {
  "Node's HTTP": (deps) => {
    const router = new EndpointRouter(deps);
    return createServer((request, response) => router.serve(request, response, () => response.destroy()));
  },
  'the fast path': (deps) =>
    new FastPathServer({}, new FastPathRoutes({ ...deps, isClosing: () => false })).on('request', () =>
      assert.fail('this request is for the fast path'),
    ),
};

async function observe(context: TestContext, create: CreateServer) {
  const metrics = new HttpMetrics();
  const log = createLog({ level: 'debug', format: 'json' });
  const debug = context.mock.method(log, 'debug', () => undefined);
  const jobs = {
    handles: () => true,
    serve: async (_request, response) => sendJson(response, 202, '{}'),
  } satisfies Pick<JobRoutes, 'handles' | 'serve'>;
  const server = create({
    jobs: jobs as unknown as JobRoutes,
    workers: undefined as never,
    openAccesses: new OpenAccesses({ events: new EventBus(), clock: systemClock }),
    queue: undefined as never,
    log,
    requestObserver: new RequestObserver(log, metrics),
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const response = await fetch(`http://127.0.0.1:${port}/v2/abc/run?api_key=secret`, {
    method: 'POST',
    body: '{}',
  });
  await response.text();
  while (debug.mock.callCount() === 0) await new Promise((resolve) => setImmediate(resolve));
  const [entry, message] = debug.mock.calls[0]?.arguments as unknown as [Record<string, unknown>, string];
  return { response, entry, message, metrics: await metrics.registry.metrics() };
}

for (const [name, create] of Object.entries(paths)) {
  test(`a request over ${name} has an id, an access log and metrics`, async (context) => {
    const { response, entry, message, metrics } = await observe(context, create);
    assert.equal(response.status, 202);
    const requestId = response.headers.get('x-request-id') ?? '';
    assert.match(requestId, /^[0-9a-f-]{36}$/);
    const { ms, ...rest } = entry;
    assert.equal(typeof ms, 'number');
    assert.deepEqual(rest, { reqId: requestId, method: 'POST', path: '/v2/abc/run', status: 202 });
    assert.equal(message, 'request');
    assert.match(
      metrics,
      /berth_http_request_seconds_count\{method="POST",route="\/v2\/:endpointId\/run",status="202"\} 1\n/,
    );
  });
}
