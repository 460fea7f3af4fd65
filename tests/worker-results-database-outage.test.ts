import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { WorkerTokens } from '../packages/cloud/src/auth/worker-tokens.ts';
import { startTcpProxy } from '../packages/testing/src/tcp-proxy.ts';
import type { TcpProxy } from '../packages/testing/src/tcp-proxy.ts';
import { createTestDatabase } from '../packages/testing/src/test-database.ts';
import type { TestDatabase } from '../packages/testing/src/test-database.ts';
import { createQueueEndpoint } from '../packages/testing/src/queue-endpoint-client.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../packages/testing/src/server-process.ts';
import { createPublicProtocolWorker } from '../packages/testing/src/protocol-workers.ts';
import type { PublicProtocolWorker, WorkerResponse } from '../packages/testing/src/protocol-workers.ts';
import { waitUntilPasses } from '../packages/testing/src/wait-for.ts';

describe('a result while the database is away', () => {
  const MASTER_KEY = '1e'.repeat(32);
  /**
   * The SDK posts again after a 5xx, two seconds and three more seconds later, and then forgets the result.
   */
  const REPEATED_AFTER_MS = [2_000, 3_000];
  const postAsSdk = async (
    worker: PublicProtocolWorker,
    id: string,
    body: unknown,
  ): Promise<WorkerResponse> => {
    let reply = await worker.done(id, body);
    for (const pause of REPEATED_AFTER_MS) {
      if (reply.status < 500) break;
      await new Promise((resolve) => setTimeout(resolve, pause));
      reply = await worker.done(id, body);
    }
    return reply;
  };

  let database: TestDatabase;
  let cable: TcpProxy;
  let server: ServerProcess;
  before(async () => {
    database = await createTestDatabase('postgres');
    cable = await startTcpProxy(database.url);
    server = await startServerProcess(
      { data: database.data, url: cable.url },
      { BERTH_RATE_LIMITS: 'off', BERTH_MASTER_KEY: MASTER_KEY },
    );
  });
  after(async () => {
    await server.stop();
    await cable.disconnect();
    await database.drop();
  });

  /**
   * Two results of one worker, posted so many milliseconds after the database went away; it is back 8 s after
   * the post.
   */
  const surviving = async (postedAfter: number): Promise<void> => {
    const jobs = await createQueueEndpoint(server.url, server.key);
    const token = new WorkerTokens(Buffer.from(MASTER_KEY, 'hex')).tokenFor(jobs.id, 'w');
    const worker = createPublicProtocolWorker({
      url: server.url,
      endpointId: jobs.id,
      workerId: 'w',
      key: token,
    });
    const ids = [await jobs.run(), await jobs.run()];
    await worker.pollBatch(2);
    await cable.disconnect();
    const away = Date.now();
    await waitUntilPasses(() => assert.ok(Date.now() - away >= postedAfter));
    const posts = Promise.all(ids.map((id, n) => postAsSdk(worker, id, { output: n })));
    await waitUntilPasses(() => assert.ok(Date.now() - away >= postedAfter + 8_000), 20_000);
    await cable.reconnect();
    for (const { status, text } of await posts) assert.equal(status, 200, text);
    for (const [n, id] of ids.entries()) {
      const { status, output, retries } = await jobs.waitForEnd(id);
      assert.deepEqual([status, output, retries], ['COMPLETED', n, undefined]);
    }
    worker.close();
  };

  test('is held and not refused, and is there when the database is back', () => surviving(0));

  test('also when the server no longer remembers the endpoint', () => surviving(3_000));
});
