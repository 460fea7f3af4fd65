import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { afterEach, describe, test } from 'node:test';
import type { JobQueue } from '../jobs/queue.ts';
import { sampleEndpoint } from '../resources/endpoints/endpoint.sample.ts';
import { createLog } from '../support/log.ts';
import { EndpointTraffic } from './traffic.ts';
import type { WorkerFace } from './workers/face.ts';

describe('a worker that asks for the channel', () => {
  let server: Server;
  let worker: Socket;

  afterEach(() => {
    worker.destroy();
    server.close();
  });

  test('is sent away where the server has begun to stop while it was let in', async () => {
    const [asked, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const workers = {
      admit: async () => {
        asked.resolve();
        await answer.promise;
        return sampleEndpoint;
      },
    };
    const queue = { close: () => undefined };
    const traffic = new EndpointTraffic({ jobs: undefined as never, workers: workers as unknown as WorkerFace, queue: queue as unknown as JobQueue, log: createLog({ level: 'silent', format: 'json' }) });
    server = createServer().on('upgrade', (request, socket, head) => void traffic.upgrade(request, socket, head));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    worker = connect((server.address() as AddressInfo).port, '127.0.0.1').setEncoding('utf8');
    worker.write('GET /v2/e/job-channel/w HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: berth-worker/1\r\n\r\n');
    await asked.promise;
    traffic.close();
    answer.resolve();
    const [said] = (await once(worker, 'data')) as [string];
    assert.match(said, /^HTTP\/1\.1 503 /);
  });
});
