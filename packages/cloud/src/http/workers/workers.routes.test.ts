import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { IncomingMessage, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { createServiceContext } from '../../../../testing/src/service-context.ts';
import type { ServiceContext } from '../../../../testing/src/service-context.ts';
import { WORKER_TIMEOUT_MS } from '../../queue/connected-worker.ts';
import { JobQueue } from '../../queue/job-queue.ts';
import { EndpointCache } from '../../resources/endpoints/endpoint-cache.ts';
import { sampleEndpoint } from '../../resources/endpoints/endpoint.fixture.ts';
import { Authenticator } from '../../auth/authenticator.ts';
import type { Delivery, Job, TakenJob } from '../../domain/job-records.ts';
import type { JobStore } from '../../store/job-store.ts';
import { noopWakeupBus } from '../../store/wakeup-bus.ts';
import { createLog } from '../../support/log.ts';
import { parseJobUrl } from '../jobs/job-url.ts';
import type { JobUrl } from '../jobs/job-url.ts';
import { WorkerRoutes } from './workers.routes.ts';
import { WorkerTokens } from '../../auth/worker-tokens.ts';
import { EventBus } from '../../support/event-bus.ts';
import { OpenAccesses } from '../../auth/open-access.ts';

let context: ServiceContext;
const servers: Server[] = [];
before(async () => {
  context = await createServiceContext();
});
after(async () => {
  for (const server of servers) server.close().closeAllConnections();
  await context.close();
});

test('a worker that disconnects while it is authenticated does not count as connected', async () => {
  const log = createLog({ level: 'silent', format: 'json' });
  const queue = new JobQueue({
    store: context.store.jobs,
    wakeups: noopWakeupBus,
    clock: context.clock,
    log,
    deliveryOf: (): Delivery => assert.fail(),
    events: new EventBus(),
  });
  const [asked, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const slow = {
    findInAnyAccount: async () => {
      asked.resolve();
      await answer.promise;
      return sampleEndpoint;
    },
  };
  const tokens = new WorkerTokens(Buffer.alloc(32, 1));
  const routes = new WorkerRoutes({
    queue,
    endpoints: new EndpointCache(slow, context.clock),
    authenticator: new Authenticator(context),
    openAccesses: new OpenAccesses(context),
    tokens,
    log,
  });
  const [served, gone] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const server = createServer((incoming, response) => {
    response.on('close', () => gone.resolve());
    routes
      .serve(incoming, response, parseJobUrl(incoming.url ?? '') as JobUrl)
      .then(served.resolve, served.reject);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const call = request({
    host: '127.0.0.1',
    port: (server.address() as AddressInfo).port,
    path: '/v2/e/ping/w?x=1',
    headers: { authorization: tokens.tokenFor('e', 'w') },
  });
  call.on('error', () => call.destroy());
  call.end();
  await asked.promise;
  call.destroy();
  await gone.promise;
  answer.resolve();
  await served.promise;
  assert.equal(queue.heartbeats.isAlive('e', 'w'), true);
  context.clock.advance(WORKER_TIMEOUT_MS);
  assert.equal(queue.heartbeats.isAlive('e', 'w'), false);
  server.close();
});

/** A face over a queue, and what it answers to the worker `w`. */
async function serving(changed: Partial<JobStore> = {}): Promise<{
  queue: JobQueue;
  endpointId: string;
  ask(path: string): Promise<{ status: number; text: string }>;
}> {
  const log = createLog({ level: 'silent', format: 'json' });
  const queue = new JobQueue({
    store: { ...context.store.jobs, ...changed },
    wakeups: noopWakeupBus,
    clock: context.clock,
    log,
    deliveryOf: (): Delivery => assert.fail(),
    events: new EventBus(),
  });
  const endpointId = `endpoint${servers.length}`;
  const tokens = new WorkerTokens(Buffer.alloc(32, 1));
  const routes = new WorkerRoutes({
    queue,
    endpoints: new EndpointCache(
      { findInAnyAccount: async () => ({ ...sampleEndpoint, id: endpointId }) },
      context.clock,
    ),
    authenticator: new Authenticator(context),
    openAccesses: new OpenAccesses(context),
    tokens,
    log,
  });
  const server = createServer(
    { maxHeaderSize: 256 * 1024 },
    (incoming, response) => void routes.serve(incoming, response, parseJobUrl(incoming.url ?? '') as JobUrl),
  );
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const at = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v2/${endpointId}`;
  return {
    queue,
    endpointId,
    ask: async (path) => {
      const call = request(`${at}/${path}`, { headers: { authorization: tokens.tokenFor(endpointId, 'w') } });
      call.end();
      const [response] = (await once(call, 'response')) as [IncomingMessage];
      return { status: response.statusCode ?? 0, text: await text(response) };
    },
  };
}

async function submit(
  { queue, endpointId }: { queue: JobQueue; endpointId: string },
  input: string,
): Promise<Job> {
  const endpoint = {
    id: endpointId,
    accountId: 'a',
    executionTimeout: 0,
    jobTtl: 86_400_000,
    retention: null,
    maxRetries: 1,
  };
  return queue.submit({ endpoint, accountId: 'a', request: JSON.stringify({ input }), options: {} });
}

test('a batch that would be too long is cut, and the jobs beyond wait on as if never taken', async () => {
  const on = await serving();
  const jobs: Job[] = [];
  for (const length of [9, 9, 9, 9, 40]) jobs.push(await submit(on, 'x'.repeat(length * 1024 * 1024)));
  const batch = async (): Promise<string[]> =>
    (
      JSON.parse((await on.ask('job-take-batch/w?batch_size=10&job_in_progress=1')).text) as { id: string }[]
    ).map(({ id }) => id);
  const ids = jobs.map(({ id }) => id);
  assert.deepEqual(await batch(), ids.slice(0, 3));
  while ((await on.queue.counts(on.endpointId)).inQueue < 2)
    await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(await batch(), ids.slice(3, 4));
  while ((await on.queue.counts(on.endpointId)).inQueue < 1)
    await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(await batch(), ids.slice(4), 'one goes out however long it is');
  const last = (await on.queue.find(on.endpointId, jobs[4]?.seq ?? 0))?.job;
  assert.deepEqual([last?.attempt, last?.retries], [1, 0]);
});

test('jobs of which no answer can be made go back as if never taken', async () => {
  const { jobs } = context.store;
  const unreadable = (taken: TakenJob): TakenJob => ({
    job: taken.job,
    get request(): string {
      throw new RangeError('Invalid string length');
    },
  });
  const on = await serving({ take: async (...asked) => (await jobs.take(...asked)).map(unreadable) });
  const given = [await submit(on, 'one'), await submit(on, 'two')];
  assert.notEqual((await on.ask('job-take-batch/w?batch_size=2&job_in_progress=0')).status, 200);
  for (const { seq } of given) {
    const job = (await on.queue.find(on.endpointId, seq))?.job;
    assert.deepEqual([job?.status, job?.attempt, job?.retries], ['IN_QUEUE', 0, 0]);
  }
});

test('a ping of the maximum length may have been cut off: jobs that it does not list are not lost', async () => {
  const on = await serving();
  const job = await submit(on, 'beyond the list');
  assert.equal((await on.ask('job-take/w?job_in_progress=0')).status, 200);
  context.clock.advance(1);
  on.queue.heartbeats.recordTake(on.endpointId, 'w', false);
  const ids = Array.from({ length: 1_600 }, (_, n) =>
    job.id.replace(/^.{8}/, `ffff${String(n).padStart(4, '0')}`),
  );
  const lostAfter = async (count: number): Promise<number[]> => {
    assert.equal((await on.ask(`ping/w?job_id=${ids.slice(0, count).join('%2C')}`)).status, 200);
    context.clock.advance(15_000);
    return on.queue.heartbeats.lostJobs().map(({ seq }) => seq);
  };
  assert.deepEqual(await lostAfter(1_600), []);
  assert.deepEqual(await lostAfter(1_000), [job.seq]);
});
