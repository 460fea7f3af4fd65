import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect, Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import type { TestContext as Running } from 'node:test';
import { createServiceContext } from '../../../testing/src/service-context.ts';
import type { ServiceContext } from '../../../testing/src/service-context.ts';
import { JobQueue } from '../queue/job-queue.ts';
import { sampleEndpoint } from '../resources/endpoints/endpoint.fixture.ts';
import type { Delivery } from '../domain/job-records.ts';
import type { Endpoint } from '../domain/records.ts';
import { noopWakeupBus } from '../store/wakeup-bus.ts';
import { createLog } from '../support/log.ts';
import { EndpointRouter } from './endpoint-router.ts';
import type { WorkerRoutes } from './workers/workers.routes.ts';
import { EventBus } from '../support/event-bus.ts';
import type { CloudEventBus } from '../domain/events.ts';
import { OpenAccesses } from '../auth/open-access.ts';

describe('a worker that asks for the channel', () => {
  let context: ServiceContext;
  before(async () => {
    context = await createServiceContext();
  });
  after(() => context.close());

  /** What is said to it. */
  async function asks(
    running: Running,
    authorize: (router: EndpointRouter) => Promise<{ endpoint: Endpoint }>,
  ): Promise<string> {
    const log = createLog({ level: 'silent', format: 'json' });
    const events: CloudEventBus = new EventBus();
    const queue = new JobQueue({
      store: context.store.jobs,
      wakeups: noopWakeupBus,
      clock: context.clock,
      log,
      deliveryOf: (): Delivery => assert.fail(),
      events,
    });
    const openAccesses = new OpenAccesses({ events, clock: context.clock });
    const workers = {
      authorize: () => authorize(router),
    } as unknown as WorkerRoutes;
    const router = new EndpointRouter({ jobs: undefined as never, workers, queue, openAccesses, log });
    const server = createServer().on(
      'upgrade',
      (request, socket, head) => void router.upgrade(request, socket, head),
    );
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const worker = connect((server.address() as AddressInfo).port, '127.0.0.1').setEncoding('utf8');
    running.after(() => {
      worker.destroy();
      server.close();
    });
    worker.write(
      'GET /v2/e/job-channel/w HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: berth-worker/1\r\n\r\n',
    );
    const [said] = (await once(worker, 'data')) as [string];
    return said;
  }

  test('gets a connection on which the system notices when it has vanished', async (running) => {
    const watched = running.mock.method(Socket.prototype, 'setKeepAlive');
    assert.match(await asks(running, async () => ({ endpoint: sampleEndpoint })), /^HTTP\/1\.1 101 /);
    assert.deepEqual(
      watched.mock.calls.map(({ arguments: [on] }) => on),
      [true],
    );
  });

  test('is sent away where the server has begun to stop while it was let in', async (running) => {
    const said = await asks(running, async (router) => {
      router.close();
      return { endpoint: sampleEndpoint };
    });
    assert.match(said, /^HTTP\/1\.1 503 /);
  });
});
