import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { freshContext } from '../../../../../tests/support/context.ts';
import type { TestContext } from '../../../../../tests/support/context.ts';
import { JobQueue } from '../../jobs/queue.ts';
import { EndpointDirectory } from '../../resources/endpoints/directory.ts';
import { sampleEndpoint } from '../../resources/endpoints/endpoint.sample.ts';
import { Gate } from '../../resources/keys/gate.ts';
import type { Delivery } from '../../store/job-records.ts';
import type { ApiKey } from '../../store/records.ts';
import { noWakeups } from '../../store/wakeups.ts';
import { createLog } from '../../support/log.ts';
import { jobAddress } from './address.ts';
import type { JobAddress } from './address.ts';
import { JobFace } from './face.ts';

let context: TestContext;
before(async () => {
  context = await freshContext();
});
after(() => context.close());

class OpenGate extends Gate {
  override async identify(): Promise<ApiKey> {
    return { accountId: sampleEndpoint.accountId, access: 'all' } as ApiKey;
  }
}

test('of a job whose caller has left nobody asks why it waits', async () => {
  const log = createLog({ level: 'silent', format: 'json' });
  let asked = 0;
  const store = {
    ...context.store.jobs,
    workers: (...about: Parameters<typeof context.store.jobs.workers>) => {
      asked += 1;
      return context.store.jobs.workers(...about);
    },
  };
  const queue = new JobQueue({ store, wakeups: noWakeups, clock: context.clock, log, deliveryOf: (): Delivery => assert.fail(), onDelivery: () => undefined });
  const endpoints = new EndpointDirectory({ findAnywhere: async () => sampleEndpoint }, context.clock);
  const face = new JobFace({ queue, webhooks: undefined as never, endpoints, gate: new OpenGate(context), limits: undefined, log, fleetReason: () => undefined });
  const served: Promise<void>[] = [];
  const server = createServer((incoming, response) => served.push(face.serve(incoming, response, jobAddress(incoming.url ?? '') as JobAddress)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const path = `/v2/${sampleEndpoint.id}`;

  const leaver = request({ method: 'POST', host: '127.0.0.1', port, path: `${path}/runsync?wait=60000` }).on('error', () => undefined);
  leaver.end('{"input":1}');
  while ((await queue.counts(sampleEndpoint.id)).inQueue === 0) await new Promise((resolve) => setImmediate(resolve));
  leaver.destroy();
  await served[0];
  assert.equal(asked, 0);

  const base = `http://127.0.0.1:${port}${path}`;
  const { id } = (await (await fetch(`${base}/run`, { method: 'POST', body: '{"input":1}' })).json()) as { id: string };
  assert.match(await (await fetch(`${base}/status/${id}`)).text(), /"reason":"no worker is connected/);
  assert.equal(asked, 1);
  server.close();
});
