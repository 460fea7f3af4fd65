import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { JobFace } from '../../packages/cloud/src/http/jobs/face.ts';
import { EndpointTraffic } from '../../packages/cloud/src/http/traffic.ts';
import { WorkerFace } from '../../packages/cloud/src/http/workers/face.ts';
import { WorkerTokens } from '../../packages/cloud/src/http/workers/tokens.ts';
import { JobQueue } from '../../packages/cloud/src/jobs/queue.ts';
import { Sweeper } from '../../packages/cloud/src/jobs/sweeper.ts';
import { deliveryOf } from '../../packages/cloud/src/jobs/webhooks/delivery.ts';
import { Webhooks } from '../../packages/cloud/src/jobs/webhooks/webhooks.ts';
import { ensureRoot, ROOT_ACCOUNT_ID } from '../../packages/cloud/src/resources/accounts/root.ts';
import { EndpointDirectory } from '../../packages/cloud/src/resources/endpoints/directory.ts';
import { sampleEndpoint } from '../../packages/cloud/src/resources/endpoints/endpoint.sample.ts';
import { Gate } from '../../packages/cloud/src/resources/keys/gate.ts';
import type { JobStore } from '../../packages/cloud/src/store/jobs.ts';
import { openStore } from '../../packages/cloud/src/store/open.ts';
import type { Endpoint } from '../../packages/cloud/src/store/records.ts';
import type { Clock } from '../../packages/cloud/src/support/clock.ts';
import { Sealer } from '../../packages/cloud/src/support/crypto.ts';
import { randomIds } from '../../packages/cloud/src/support/ids.ts';
import { createLog } from '../../packages/cloud/src/support/log.ts';
import type { TestDatabase } from '../support/databases.ts';
import { ROOT_KEY } from '../support/server.ts';

const MASTER_KEY = Buffer.alloc(32, 7);

/** The queue and its two faces in this process, on a real store and a real port, with the clock and the job store that a test wants. */
export interface Site {
  url: string;
  endpoint: Endpoint;
  queue: JobQueue;
  close(): Promise<void>;
}

export interface SiteOptions {
  database: TestDatabase;
  clock: Clock;
  endpoint?: Partial<Endpoint>;
  /** What the queue gets to see of the store. */
  jobs?: (store: JobStore) => JobStore;
  /** False where the test itself lets time do its work. */
  sweeps?: boolean;
}

export async function openSite({
  database,
  clock,
  endpoint: settings,
  jobs = (store) => store,
  sweeps = true,
}: SiteOptions): Promise<Site> {
  const log = createLog({ level: process.env['SITE_LOG'] ?? 'silent', format: 'json' });
  const store = await openStore({
    database: database.url,
    data: database.data,
    poolSize: 10,
    sealer: new Sealer(MASTER_KEY),
    onError: (error) => log.warn({ err: error }, 'a database connection failed'),
  });
  const context = { store, clock, ids: randomIds };
  await ensureRoot(context, ROOT_KEY);
  const endpoint: Endpoint = {
    ...sampleEndpoint,
    executionTimeout: 0,
    ...settings,
    id: 'safety',
    accountId: ROOT_ACCOUNT_ID,
  };
  const seen = jobs(store.jobs);
  const queue = new JobQueue({
    store: seen,
    wakeups: store.wakeups,
    clock,
    log,
    deliveryOf: (job, payloads) => deliveryOf(job, payloads, randomIds.resource(), clock.now()),
    onDelivery: () => undefined,
  });
  await queue.recover();
  const endpoints = new EndpointDirectory(
    { findAnywhere: async (id) => (id === endpoint.id ? endpoint : undefined) },
    clock,
  );
  const gate = new Gate(context);
  const traffic = new EndpointTraffic({
    queue,
    log,
    jobs: new JobFace({
      queue,
      webhooks: new Webhooks({ store: seen, clock, onDue: () => undefined }),
      endpoints,
      gate,
      limits: undefined,
      log,
      fleetReason: () => undefined,
      fleetCounts: () => undefined,
    }),
    workers: new WorkerFace({ queue, endpoints, gate, tokens: new WorkerTokens(MASTER_KEY), log }),
  });
  const sweeper = new Sweeper(queue.caretaker, log);
  if (sweeps) sweeper.start();
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
