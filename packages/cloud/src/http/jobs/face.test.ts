import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { IncomingMessage, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, afterEach, before, test } from 'node:test';
import type { FastifyBaseLogger } from 'fastify';
import { freshContext } from '../../../../../tests/support/context.ts';
import type { TestContext } from '../../../../../tests/support/context.ts';
import { JobQueue } from '../../jobs/queue.ts';
import { EndpointDirectory } from '../../resources/endpoints/directory.ts';
import { sampleEndpoint } from '../../resources/endpoints/endpoint.sample.ts';
import { Gate } from '../../resources/keys/gate.ts';
import type { Delivery } from '../../store/job-records.ts';
import type { JobStore } from '../../store/jobs.ts';
import type { ApiKey } from '../../store/records.ts';
import { noWakeups } from '../../store/wakeups.ts';
import { BerthError } from '../../support/errors.ts';
import { createLog } from '../../support/log.ts';
import { jobAddress } from './address.ts';
import type { JobAddress } from './address.ts';
import { JobFace } from './face.ts';

let context: TestContext;
before(async () => {
  context = await freshContext();
});
after(() => context.close());

let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

class OpenGate extends Gate {
  override async identify(): Promise<ApiKey> {
    return { accountId: sampleEndpoint.accountId, access: 'all' } as ApiKey;
  }
}

const log = createLog({ level: 'silent', format: 'json' });

/** A queue behind a plain server, and what it serves. */
async function served(
  changed: Partial<JobStore>,
  asked: { log?: FastifyBaseLogger; gate?: Gate; endpoints?: EndpointDirectory } = {},
) {
  const queue = new JobQueue({
    store: { ...context.store.jobs, ...changed },
    wakeups: noWakeups,
    clock: context.clock,
    log,
    deliveryOf: (): Delivery => assert.fail(),
    onDelivery: () => undefined,
  });
  const {
    endpoints = new EndpointDirectory({ findAnywhere: async () => sampleEndpoint }, context.clock),
    gate = new OpenGate(context),
  } = asked;
  const face = new JobFace({
    queue,
    webhooks: undefined as never,
    endpoints,
    gate,
    limits: undefined,
    log: asked.log ?? log,
    fleetReason: () => undefined,
  });
  const serving: Promise<void>[] = [];
  server = createServer((incoming, response) =>
    serving.push(face.serve(incoming, response, jobAddress(incoming.url ?? '') as JobAddress)),
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

test('of a job whose caller has left nobody asks why it waits', async () => {
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

test('a caller who left before the server stopped is no matter for the log, though the store is closed by then', async () => {
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
      override async identify(): Promise<ApiKey> {
        identified += 1;
        if (gone === 'key' && identified > 1) throw new BerthError('unauthenticated', 'invalid API key');
        return super.identify();
      }
    }
    const endpoints = new EndpointDirectory(
      {
        findAnywhere: async () => {
          found += 1;
          setImmediate(admitted.resolve);
          return gone === 'endpoint' && found > 1 ? undefined : sampleEndpoint;
        },
      },
      context.clock,
      0,
    );
    const { base } = await served({}, { gate: new OnceGate(context), endpoints });
    assert.equal(await statusOfSlow(`${base}/run`, admitted.promise), status, gone);
    server?.close();
  }
});
