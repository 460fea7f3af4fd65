import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { freshContext } from '../../../../../tests/support/context.ts';
import type { TestContext } from '../../../../../tests/support/context.ts';
import { SILENT_MS } from '../../jobs/presence.ts';
import { JobQueue } from '../../jobs/queue.ts';
import { EndpointDirectory } from '../../resources/endpoints/directory.ts';
import { sampleEndpoint } from '../../resources/endpoints/endpoint.sample.ts';
import { Gate } from '../../resources/keys/gate.ts';
import type { Delivery } from '../../store/job-records.ts';
import { noWakeups } from '../../store/wakeups.ts';
import { createLog } from '../../support/log.ts';
import { jobAddress } from '../jobs/address.ts';
import type { JobAddress } from '../jobs/address.ts';
import { WorkerFace } from './face.ts';
import { WorkerTokens } from './tokens.ts';

let context: TestContext;
before(async () => {
  context = await freshContext();
});
after(() => context.close());

test('a worker that leaves while it is being let in is not taken for one that is there', async () => {
  const log = createLog({ level: 'silent', format: 'json' });
  const queue = new JobQueue({ store: context.store.jobs, wakeups: noWakeups, clock: context.clock, log, deliveryOf: (): Delivery => assert.fail(), onDelivery: () => undefined });
  const [asked, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const slow = {
    findAnywhere: async () => {
      asked.resolve();
      await answer.promise;
      return sampleEndpoint;
    },
  };
  const tokens = new WorkerTokens(Buffer.alloc(32, 1));
  const face = new WorkerFace({ queue, endpoints: new EndpointDirectory(slow, context.clock), gate: new Gate(context), tokens, log });
  const [served, gone] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const server = createServer((incoming, response) => {
    response.on('close', () => gone.resolve());
    face.serve(incoming, response, jobAddress(incoming.url ?? '') as JobAddress).then(served.resolve, served.reject);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const call = request({ host: '127.0.0.1', port: (server.address() as AddressInfo).port, path: '/v2/e/ping/w?x=1', headers: { authorization: tokens.of('e', 'w') } });
  call.on('error', () => call.destroy());
  call.end();
  await asked.promise;
  call.destroy();
  await gone.promise;
  answer.resolve();
  await served.promise;
  assert.equal(queue.presence.lives('e', 'w'), true);
  context.clock.advance(SILENT_MS);
  assert.equal(queue.presence.lives('e', 'w'), false);
  server.close();
});
