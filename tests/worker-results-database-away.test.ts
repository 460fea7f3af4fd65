import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { WorkerTokens } from '../packages/cloud/src/http/workers/tokens.ts';
import { cableTo } from './support/cable.ts';
import type { Cable } from './support/cable.ts';
import { freshDatabase } from './support/databases.ts';
import type { TestDatabase } from './support/databases.ts';
import { eventually, newEndpoint } from './support/jobs.ts';
import { startServer } from './support/server.ts';
import type { TestServer } from './support/server.ts';
import { publicWorker } from './support/worker.ts';
import type { PublicWorker, Reply } from './support/worker.ts';

describe('a result while the database is away', () => {
  const MASTER_KEY = '1e'.repeat(32);
  /** The SDK posts again after a 5xx, two seconds and three more seconds later, and then forgets the result. */
  const REPEATED_AFTER_MS = [2_000, 3_000];
  const postAsSdk = async (worker: PublicWorker, id: string, body: unknown): Promise<Reply> => {
    let reply = await worker.done(id, body);
    for (const pause of REPEATED_AFTER_MS) {
      if (reply.status < 500) break;
      await new Promise((resolve) => setTimeout(resolve, pause));
      reply = await worker.done(id, body);
    }
    return reply;
  };

  let database: TestDatabase;
  let cable: Cable;
  let server: TestServer;
  before(async () => {
    database = await freshDatabase('postgres');
    cable = await cableTo(database.url);
    server = await startServer(
      { data: database.data, url: cable.url },
      { BERTH_RATE_LIMITS: 'off', BERTH_MASTER_KEY: MASTER_KEY },
    );
  });
  after(async () => {
    await server.stop();
    await cable.pull();
    await database.drop();
  });

  /** Two results of one worker, posted so many milliseconds after the database went away; it is back 8 s after the post. */
  const surviving = async (postedAfter: number): Promise<void> => {
    const jobs = await newEndpoint(server.url, server.key);
    const token = new WorkerTokens(Buffer.from(MASTER_KEY, 'hex')).of(jobs.id, 'w');
    const worker = publicWorker({ url: server.url, endpointId: jobs.id, workerId: 'w', key: token });
    const ids = [await jobs.run(), await jobs.run()];
    await worker.pollBatch(2);
    await cable.pull();
    const away = Date.now();
    await eventually(() => assert.ok(Date.now() - away >= postedAfter));
    const posts = Promise.all(ids.map((id, n) => postAsSdk(worker, id, { output: n })));
    await eventually(() => assert.ok(Date.now() - away >= postedAfter + 8_000), 20_000);
    await cable.plugIn();
    for (const { status, text } of await posts) assert.equal(status, 200, text);
    for (const [n, id] of ids.entries()) {
      const { status, output, retries } = await jobs.ended(id);
      assert.deepEqual([status, output, retries], ['COMPLETED', n, undefined]);
    }
    worker.close();
  };

  test('is held and not refused, and is there when the database is back', () => surviving(0));

  test('also when the server no longer remembers the endpoint', () => surviving(3_000));
});
