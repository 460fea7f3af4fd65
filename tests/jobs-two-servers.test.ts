import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createTestDatabase } from '../packages/testing/src/test-database.ts';
import type { TestDatabase } from '../packages/testing/src/test-database.ts';
import {
  queueEndpointClient,
  createQueueEndpoint,
  WAKEUP_LIMIT_MS,
  measureTime,
} from '../packages/testing/src/queue-endpoint-client.ts';
import type { QueueEndpointClient } from '../packages/testing/src/queue-endpoint-client.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../packages/testing/src/server-process.ts';
import { parseLogLines } from '../packages/testing/src/server-fixture.ts';
import { openChannelOrFail } from '../packages/testing/src/protocol-workers.ts';
import type { ChannelWorker } from '../packages/testing/src/protocol-workers.ts';
import { waitUntilPasses } from '../packages/testing/src/wait-for.ts';

/** The same endpoint on both servers. */
interface Both {
  a: QueueEndpointClient;
  b: QueueEndpointClient;
}

describe('two servers on one database', { concurrency: true }, () => {
  let database: TestDatabase;
  let folder: string;
  let a: ServerProcess;
  let b: ServerProcess;
  before(async () => {
    database = await createTestDatabase('postgres');
    folder = mkdtempSync(join(tmpdir(), 'berth-test-'));
    const env = { BERTH_RATE_LIMITS: 'off' };
    a = await startServerProcess(database, env);
    b = await startServerProcess({ data: folder, url: database.url }, env);
  });
  after(async () => {
    await Promise.all([a, b].map((server) => server?.stop()));
    await database?.drop();
    rmSync(folder, { recursive: true, force: true });
    for (const server of [a, b])
      assert.deepEqual(
        parseLogLines(server).filter(({ level }) => level === 'error' || level === 'fatal'),
        [],
      );
  });

  const endpoint = async (settings: Record<string, unknown> = {}): Promise<Both> => {
    const made = await createQueueEndpoint(a.url, a.key, settings);
    return { a: made, b: queueEndpointClient(b.client(), made.id, b.key) };
  };
  const open = (server: ServerProcess, jobs: QueueEndpointClient, workerId: string): Promise<ChannelWorker> =>
    openChannelOrFail({ url: server.url, endpointId: jobs.id, workerId, key: server.key });

  test('a synchronous call on one is answered by a worker on the other, at once', async () => {
    const jobs = await endpoint();
    const working = jobs.b.worker('w-b').startWorkLoop(({ input }) => ({ echo: input }));
    await waitUntilPasses(async () => assert.equal((await jobs.b.health()).workers.idle, 1));
    const times: number[] = [];
    for (let n = 0; n < 10; n += 1) {
      const { took, result } = await measureTime(() => jobs.a.runSync({ n }, 60_000));
      assert.deepEqual(
        [result.body.status, result.body.output, result.body.workerId],
        ['COMPLETED', { echo: { n } }, 'w-b'],
      );
      times.push(took);
    }
    // Both ways somebody was woken; whoever waits unwoken waits for 20 s and longer.
    assert.ok(
      (times.toSorted((one, other) => one - other)[5] ?? Infinity) < WAKEUP_LIMIT_MS / 2,
      `took ${times.map(Math.round).join(', ')} ms`,
    );
    await working.stop();
  });

  test('a worker on the fast channel of one serves the other', async () => {
    const jobs = await endpoint();
    const channel = await open(b, jobs.b, 'w-b');
    channel.send('T 10');
    const answering = (async () => {
      for (let n = 0; n < 10; n += 1) {
        const { lease, job } = await channel.job();
        channel.send(`D ${job.id} ${lease} {"output":${JSON.stringify(job.input)}}`);
      }
    })();
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, n) => measureTime(() => jobs.a.runSync(n, 60_000))),
    );
    await answering;
    assert.deepEqual(
      answers.map(({ result }) => result.body.output),
      Array.from({ length: 10 }, (_, n) => n),
    );
    assert.ok(answers.every(({ took }) => took < WAKEUP_LIMIT_MS));
    channel.close();
  });

  test('a cancel on one stops the job on the other', async () => {
    const jobs = await endpoint();
    const [worker, channel] = [jobs.b.worker(), await open(b, jobs.b, 'channel')];
    const polled = await jobs.a.run();
    assert.equal((await worker.take()).id, polled);
    const stopping = worker.stops();
    const first = await measureTime(async () => {
      assert.equal((await jobs.a.call('POST', `cancel/${polled}`)).body.status, 'CANCELLED');
      return (await stopping).body;
    });
    assert.deepEqual(first.result, { jobsToStop: [polled] });
    assert.ok(first.took < WAKEUP_LIMIT_MS, `told after ${first.took} ms`);
    const channelled = await jobs.a.run();
    channel.send('T 1');
    await channel.job();
    const second = await measureTime(async () => {
      await jobs.a.call('POST', `cancel/${channelled}`);
      return channel.next('X');
    });
    assert.equal(second.result, channelled);
    assert.ok(second.took < WAKEUP_LIMIT_MS, `told after ${second.took} ms`);
    assert.equal((await jobs.b.status(channelled)).status, 'CANCELLED');
    worker.close();
    channel.close();
  });

  test('a stream that is written through one is read on the other', async () => {
    const jobs = await endpoint();
    const worker = jobs.b.worker();
    const id = await jobs.a.run();
    await worker.take();
    for (let n = 0; n < 5; n += 1) {
      const reading = jobs.a.call('GET', `stream/${id}?wait=60000`);
      const { took, result } = await measureTime(async () => {
        await worker.chunk(id, { output: n });
        return reading;
      });
      assert.deepEqual(result.body, [{ output: n }]);
      assert.ok(took < WAKEUP_LIMIT_MS, `read after ${took} ms`);
    }
    const ending = jobs.a.call('GET', `status-sync/${id}?wait=60000`);
    const { took } = await measureTime(async () => {
      await worker.done(id, { output: [] }, true);
      assert.equal((await ending).body.status, 'COMPLETED');
    });
    assert.ok(took < WAKEUP_LIMIT_MS, `ended after ${took} ms`);
    assert.deepEqual((await jobs.a.call('GET', `stream/${id}`)).body, []);
    worker.close();
  });

  test('jobs that go out on both are handed out once', async () => {
    const jobs = await endpoint();
    const seen: string[] = [];
    const handler = ({ id }: { id: string }): number => seen.push(id);
    const working = [jobs.a.worker().startWorkLoop(handler, 5), jobs.b.worker().startWorkLoop(handler, 5)];
    const ids = await Promise.all(
      Array.from({ length: 100 }, (_, n) => (n % 2 === 0 ? jobs.a : jobs.b).run({ n })),
    );
    for (const id of ids) assert.equal((await jobs.a.waitForEnd(id)).status, 'COMPLETED');
    assert.equal(new Set(ids).size, 100);
    assert.deepEqual(seen.toSorted(), ids.toSorted());
    assert.deepEqual((await jobs.b.health()).jobs, {
      completed: 100,
      failed: 0,
      inProgress: 0,
      inQueue: 0,
      retried: 0,
    });
    await Promise.all(working.map((one) => one.stop()));
  });

  test('a request with an Idempotency-Key that reaches both makes one job', async () => {
    const jobs = await endpoint();
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        (n % 2 === 0 ? jobs.a : jobs.b).call('POST', 'run', { input: {} }, { 'idempotency-key': 'same' }),
      ),
    );
    assert.equal(new Set(answers.map(({ body }) => body.id)).size, 1);
    assert.equal((await jobs.a.health()).jobs.inQueue, 1);
  });

  test('a retry on one wakes a worker on the other', async () => {
    const jobs = await endpoint();
    const worker = jobs.b.worker();
    const id = await jobs.a.run();
    await worker.take();
    await worker.done(id, { error: 'no' });
    const polling = worker.take();
    const { took, result } = await measureTime(async () => {
      await jobs.a.call('POST', `retry/${id}`);
      return polling;
    });
    assert.equal(result.id, id);
    assert.ok(took < WAKEUP_LIMIT_MS, `taken after ${took} ms`);
    worker.close();
  });

  test('a revoked key is refused on both at once', async () => {
    const jobs = await endpoint();
    const { body } = await a.client().call<{ id: string; key: string }>('POST', '/v2/account/api-keys', {
      name: 'short-lived',
      access: 'ALL',
    });
    const through = (server: ServerProcess): Promise<number> =>
      server
        .client(body.key)
        .call('GET', `/v2/${jobs.a.id}/health`)
        .then(({ status }) => status);
    assert.deepEqual(await Promise.all([through(a), through(b)]), [200, 200]);
    assert.equal((await a.client().call('DELETE', `/v2/account/api-keys/${body.id}`)).status, 204);
    const { took } = await measureTime(() =>
      waitUntilPasses(async () => assert.deepEqual(await Promise.all([through(a), through(b)]), [401, 401])),
    );
    assert.ok(took < WAKEUP_LIMIT_MS, `refused after ${took} ms`);
  });

  test('a call that waits on one ends when its key is revoked on the other', async () => {
    const jobs = await endpoint();
    const { body } = await a.client().call<{ id: string; key: string }>('POST', '/v2/account/api-keys', {
      name: 'short-lived',
      access: 'ALL',
    });
    const id = await jobs.a.run();
    const asked = b.client(body.key);
    assert.equal((await asked.call('GET', `/v2/${jobs.a.id}/health`)).status, 200);
    const waiting = asked.call('GET', `/v2/${jobs.a.id}/status-sync/${id}?wait=300000`);
    const { took, result } = await measureTime(async () => {
      assert.equal((await a.client().call('DELETE', `/v2/account/api-keys/${body.id}`)).status, 204);
      return waiting;
    });
    assert.equal(result.status, 401);
    assert.ok(took < WAKEUP_LIMIT_MS, `ended after ${took} ms`);
  });

  test('a worker that moves from one to the other keeps its job', async () => {
    const jobs = await endpoint();
    const first = await open(a, jobs.a, 'moves');
    const id = await jobs.a.run();
    first.send('T 1');
    const { lease } = await first.job();
    first.close();
    const second = await open(b, jobs.b, 'moves');
    second.send(`L ${id}`);
    await jobs.a.call('GET', `status-sync/${id}?wait=13000`);
    assert.equal((await jobs.b.status(id)).status, 'IN_PROGRESS');
    second.send(`D ${id} ${lease} {"output":"moved"}`);
    assert.equal(await second.next('A'), `${id} ${lease}`);
    assert.deepEqual(
      [(await jobs.a.status(id)).output, (await jobs.a.status(id)).retries],
      ['moved', undefined],
    );
    second.close();
  });

  test('both know the workers of either', async () => {
    const jobs = await endpoint();
    const worker = jobs.b.worker();
    const leaving = new AbortController();
    const polling = worker.poll({ signal: leaving.signal });
    await waitUntilPasses(async () => assert.equal((await jobs.a.health()).workers.idle, 1), 15_000);
    leaving.abort();
    await assert.rejects(polling);
    worker.close();
  });

  test('a purge on one wakes callers that wait on the other', async () => {
    const jobs = await endpoint();
    const caller = jobs.b.runSync({}, 60_000);
    await waitUntilPasses(async () => assert.equal((await jobs.a.health()).jobs.inQueue, 1));
    const { took, result } = await measureTime(async () => {
      assert.equal((await jobs.a.call<{ removed: number }>('POST', 'purge-queue')).body.removed, 1);
      return caller;
    });
    assert.equal(result.status, 404);
    assert.ok(took < WAKEUP_LIMIT_MS, `told after ${took} ms`);
  });
});
