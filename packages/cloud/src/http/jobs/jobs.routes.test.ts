import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { IncomingMessage, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, afterEach, before, test } from 'node:test';
import type { FastifyBaseLogger } from 'fastify';
import { createServiceContext } from '../../../../testing/src/service-context.ts';
import type { ServiceContext } from '../../../../testing/src/service-context.ts';
import { JobQueue } from '../../queue/job-queue.ts';
import { EndpointCache } from '../../resources/endpoints/endpoint-cache.ts';
import { sampleEndpoint } from '../../resources/endpoints/endpoint.fixture.ts';
import { Authenticator } from '../../auth/authenticator.ts';
import type { Delivery } from '../../domain/job-records.ts';
import type { JobStore } from '../../store/job-store.ts';
import type { ApiKey } from '../../domain/records.ts';
import { noopWakeupBus } from '../../store/wakeup-bus.ts';
import { BerthError } from '../../support/errors.ts';
import { createLog } from '../../support/log.ts';
import { parseJobUrl } from './job-url.ts';
import type { JobUrl } from './job-url.ts';
import { jobRoutes } from './job-routes.fixture.ts';
import { EventBus } from '../../support/event-bus.ts';

let context: ServiceContext;
before(async () => {
  context = await createServiceContext();
});
after(() => context.close());

let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

class OpenGate extends Authenticator {
  override async authenticate(): Promise<ApiKey> {
    return { accountId: sampleEndpoint.accountId, access: 'all' } as ApiKey;
  }
}

const log = createLog({ level: 'silent', format: 'json' });

/** A queue behind a plain server, and what it serves. */
async function served(
  changed: Partial<JobStore>,
  asked: { log?: FastifyBaseLogger; authenticator?: Authenticator; endpoints?: EndpointCache } = {},
) {
  const queue = new JobQueue({
    store: { ...context.store.jobs, ...changed },
    wakeups: noopWakeupBus,
    clock: context.clock,
    log,
    deliveryOf: (): Delivery => assert.fail(),
    events: new EventBus(),
  });
  const {
    endpoints = new EndpointCache({ findInAnyAccount: async () => sampleEndpoint }, context.clock),
    authenticator = new OpenGate(context),
  } = asked;
  const routes = jobRoutes(context, { queue, endpoints, authenticator, log: asked.log ?? log });
  const serving: Promise<void>[] = [];
  server = createServer((incoming, response) =>
    serving.push(routes.serve(incoming, response, parseJobUrl(incoming.url ?? '') as JobUrl)),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const path = `/v2/${sampleEndpoint.id}`;
  /** Calls `runsync`, and waits until its job is there. Answers what leaves. */
  const waitingCall = async (): Promise<() => void> => {
    const before = (await queue.counts(sampleEndpoint.id)).inQueue;
    const call = request({ method: 'POST', host: '127.0.0.1', port, path: `${path}/runsync?wait=60000` }).on(
      'error',
      () => undefined,
    );
    call.end('{"input":1}');
    while ((await queue.counts(sampleEndpoint.id)).inQueue === before)
      await new Promise((resolve) => setImmediate(resolve));
    return () => void call.destroy();
  };
  return { queue, serving, waitingCall, base: `http://127.0.0.1:${port}${path}` };
}

test('no waiting reason is looked up after the caller has disconnected', async () => {
  let asked = 0;
  const { serving, waitingCall, base } = await served({
    workers: (...about) => {
      asked += 1;
      return context.store.jobs.workers(...about);
    },
  });
  const leave = await waitingCall();
  leave();
  await serving[0];
  assert.equal(asked, 0);

  const { id } = (await (await fetch(`${base}/run`, { method: 'POST', body: '{"input":1}' })).json()) as {
    id: string;
  };
  assert.match(await (await fetch(`${base}/status/${id}`)).text(), /"reason":"no worker is connected/);
  assert.equal(asked, 1);
});

test('a caller who left before the server stopped causes no log line, though the store is closed by then', async () => {
  const errors: unknown[] = [];
  const listening = Object.assign(Object.create(log) as FastifyBaseLogger, {
    error: (...said: unknown[]) => errors.push(said),
  });
  const closed = Promise.withResolvers<never>();
  closed.promise.catch(() => undefined);
  const { queue, serving, waitingCall } = await served({ find: () => closed.promise }, { log: listening });
  const leave = await waitingCall();
  leave();
  // Its last look is under way.
  await new Promise((resolve) => setTimeout(resolve, 50));
  queue.close();
  closed.reject(new Error('the database is not open'));
  await serving[0];
  assert.deepEqual(errors, []);
});

/** Sends a body in two pieces, the second when the first was admitted; answers the status. */
async function statusOfSlow(url: string, admitted: Promise<void>): Promise<number> {
  const call = request(url, { method: 'POST' });
  call.write('{"input":');
  await admitted;
  call.end('1}');
  const [response] = (await once(call, 'response')) as [IncomingMessage];
  response.resume();
  return response.statusCode ?? 0;
}

test('a job whose key is revoked, or whose endpoint is removed, while its body comes is refused', async () => {
  for (const [gone, status] of [
    ['key', 401],
    ['endpoint', 404],
    ['nothing', 200],
  ] as const) {
    const admitted = Promise.withResolvers<void>();
    let [identified, found] = [0, 0];
    class OnceGate extends OpenGate {
      override async authenticate(): Promise<ApiKey> {
        identified += 1;
        if (gone === 'key' && identified > 1) throw new BerthError('unauthenticated', 'invalid API key');
        return super.authenticate();
      }
    }
    const endpoints = new EndpointCache(
      {
        findInAnyAccount: async () => {
          found += 1;
          setImmediate(admitted.resolve);
          return gone === 'endpoint' && found > 1 ? undefined : sampleEndpoint;
        },
      },
      context.clock,
      0,
    );
    const { base } = await served({}, { authenticator: new OnceGate(context), endpoints });
    assert.equal(await statusOfSlow(`${base}/run`, admitted.promise), status, gone);
    server?.close();
  }
});
