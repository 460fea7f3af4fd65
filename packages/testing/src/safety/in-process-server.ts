import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { JobRoutes } from '../../../cloud/src/http/jobs/jobs.routes.ts';
import { EndpointRouter } from '../../../cloud/src/http/endpoint-router.ts';
import { WorkerRoutes } from '../../../cloud/src/http/workers/workers.routes.ts';
import { WorkerTokens } from '../../../cloud/src/auth/worker-tokens.ts';
import { JobQueue } from '../../../cloud/src/queue/job-queue.ts';
import { JobReaperLoop } from '../../../cloud/src/queue/job-reaper-loop.ts';
import { deliveryOf } from '../../../cloud/src/queue/webhooks/webhook-delivery.ts';
import { WebhookDeliveries } from '../../../cloud/src/queue/webhooks/webhook-deliveries.ts';
import { ensureRootAccount } from '../../../cloud/src/resources/accounts/root-account.ts';
import { EndpointCache } from '../../../cloud/src/resources/endpoints/endpoint-cache.ts';
import { sampleEndpoint } from '../../../cloud/src/resources/endpoints/endpoint.fixture.ts';
import { Authenticator } from '../../../cloud/src/auth/authenticator.ts';
import type { JobStore } from '../../../cloud/src/store/job-store.ts';
import { openStore } from '../../../cloud/src/store/open-store.ts';
import type { Endpoint } from '../../../cloud/src/domain/records.ts';
import type { Clock } from '../../../cloud/src/support/clock.ts';
import { Sealer } from '../../../cloud/src/support/crypto.ts';
import { randomIds } from '../../../cloud/src/support/ids.ts';
import { createLog } from '../../../cloud/src/support/log.ts';
import type { TestDatabase } from '../test-database.ts';
import { ROOT_KEY } from '../server-process.ts';
import { ROOT_ACCOUNT_ID } from '../../../cloud/src/domain/caller.ts';
import { EventBus } from '../../../cloud/src/support/event-bus.ts';
import type { CloudEventBus } from '../../../cloud/src/domain/events.ts';
import { OpenAccesses } from '../../../cloud/src/auth/open-access.ts';

const MASTER_KEY = Buffer.alloc(32, 7);

/**
 * The queue and its routes in this process, on a real store and a real port, with the clock and the job
 * store that a test wants.
 */
export interface InProcessServer {
  url: string;
  endpoint: Endpoint;
  queue: JobQueue;
  close(): Promise<void>;
}

export interface InProcessServerOptions {
  database: TestDatabase;
  clock: Clock;
  endpoint?: Partial<Endpoint>;
  /** What the queue gets to see of the store. */
  wrapJobStore?: (store: JobStore) => JobStore;
  /** False where the test itself runs the reaper. */
  runSweeper?: boolean;
}

export async function startInProcessServer({
  database,
  clock,
  endpoint: settings,
  wrapJobStore = (store) => store,
  runSweeper = true,
}: InProcessServerOptions): Promise<InProcessServer> {
  const log = createLog({ level: process.env['SITE_LOG'] ?? 'silent', format: 'json' });
  const store = await openStore({
    database: database.url,
    data: database.data,
    poolSize: 10,
    sealer: new Sealer(MASTER_KEY),
    onError: (error) => log.warn({ err: error }, 'a database connection failed'),
  });
  const events: CloudEventBus = new EventBus();
  const context = { store, clock, ids: randomIds, events };
  await ensureRootAccount(context, ROOT_KEY);
  const endpoint: Endpoint = {
    ...sampleEndpoint,
    executionTimeout: 0,
    ...settings,
    id: 'safety',
    accountId: ROOT_ACCOUNT_ID,
  };
  const seen = wrapJobStore(store.jobs);
  const queue = new JobQueue({
    store: seen,
    wakeups: store.wakeups,
    clock,
    log,
    deliveryOf: (job, payloads) => deliveryOf(job, payloads, randomIds.resource(), clock.now()),
    events,
  });
  await queue.recover();
  const endpoints = new EndpointCache(
    { findInAnyAccount: async (id) => (id === endpoint.id ? endpoint : undefined) },
    clock,
  );
  const authenticator = new Authenticator(context);
  const openAccesses = new OpenAccesses(context);
  const traffic = new EndpointRouter({
    queue,
    openAccesses,
    log,
    jobs: new JobRoutes({
      queue,
      webhooks: new WebhookDeliveries({ store: seen, clock, events }),
      endpoints,
      authenticator,
      openAccesses,
      rateLimits: undefined,
      log,
      noWorkersReason: () => undefined,
      workerCounts: () => undefined,
    }),
    workers: new WorkerRoutes({
      queue,
      endpoints,
      authenticator,
      openAccesses,
      tokens: new WorkerTokens(MASTER_KEY),
      log,
    }),
  });
  const sweeper = new JobReaperLoop(queue.reaper, log);
  if (runSweeper) sweeper.start();
  const http = createServer((request, response) => {
    traffic.serve(request, response, () => response.writeHead(404).end());
  });
  http.on('upgrade', (request, socket, head) => void traffic.upgrade(request, socket, head));
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
    endpoint,
    queue,
    close: async () => {
      traffic.close();
      http.close();
      http.closeAllConnections();
      await sweeper.close();
      await store.close();
    },
  };
}
