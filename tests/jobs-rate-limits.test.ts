import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { ApiResponse } from '../packages/testing/src/api-client.ts';
import { ManualClock } from '../packages/cloud/src/support/clock.ts';
import { startInProcessApp } from '../packages/testing/src/in-process-app.ts';
import { DATABASES, createTestDatabase } from '../packages/testing/src/test-database.ts';
import {
  createQueueEndpoint,
  NO_SUCH_JOB,
  measureTime,
} from '../packages/testing/src/queue-endpoint-client.ts';
import type { QueueEndpointClient } from '../packages/testing/src/queue-endpoint-client.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';
import { waitUntilPasses } from '../packages/testing/src/wait-for.ts';

function assertTooMany(answer: ApiResponse<unknown>, text: RegExp): void {
  assert.equal(answer.status, 429, answer.text);
  assert.equal(answer.headers.get('content-type'), 'application/json; charset=utf-8');
  assert.deepEqual(Object.keys(answer.body as object), ['error']);
  assert.match((answer.body as { error: string }).error, text);
  const seconds = Number(answer.headers.get('retry-after'));
  assert.ok(seconds >= 1 && seconds <= 10, `Retry-After: ${seconds}`);
}

for (const kind of DATABASES) {
  describe(`rate limits of the job API, on ${kind}`, { concurrency: true }, () => {
    const fixture = serverFixture(kind);
    let ann: TestAccount;
    before(async () => {
      ann = await fixture.createAccount('ann');
    });
    const endpoint = (key = ann.key): Promise<QueueEndpointClient> =>
      createQueueEndpoint(fixture.server.url, key);

    test('refuse an operation that comes too often, say when to come back, and let it through then', async () => {
      const jobs = await endpoint();
      for (let call = 0; call < 2; call += 1)
        assert.equal((await jobs.call('POST', 'purge-queue')).status, 200);
      const refused = await jobs.call('POST', 'purge-queue');
      assertTooMany(refused, /^too many requests: at most 2 of purge-queue in 10 s; try again in \d+ s$/);
      const { took } = await measureTime(() =>
        waitUntilPasses(
          async () => assert.equal((await jobs.call('POST', 'purge-queue')).status, 200),
          15_000,
        ),
      );
      assert.ok(took / 1000 <= Number(refused.headers.get('retry-after')) + 3, `${took} ms`);
    });

    test('count each operation, endpoint and account apart', async () => {
      const [jobs, other] = [await endpoint(), await endpoint()];
      for (let call = 0; call < 3; call += 1) await jobs.call('POST', 'purge-queue');
      assertTooMany(await jobs.call('POST', 'purge-queue'), /purge-queue/);
      assert.equal((await other.call('POST', 'purge-queue')).status, 200);
      assert.equal((await jobs.call('GET', 'health')).status, 200);
      assert.equal((await jobs.call('POST', 'run', { input: {} })).status, 200);
      const bob = await fixture.createAccount(`bob of ${kind}`);
      assert.equal((await (await endpoint(bob.key)).call('POST', 'purge-queue')).status, 200);
    });

    test('count requests that fail for other reasons too, and are not shown without a valid key', async () => {
      const jobs = await endpoint();
      for (let call = 0; call < 10; call += 1) assert.equal((await jobs.call('GET', 'requests')).status, 200);
      assertTooMany(await jobs.call('GET', 'requests'), /^too many requests: at most 10 of requests in 10 s/);
      const stranger = fixture.server.client('rpa_WRONG');
      assert.equal((await stranger.call('GET', `/v2/${jobs.id}/requests`)).status, 401);
      for (let call = 0; call < 100; call += 1) await jobs.call('POST', `cancel/${NO_SUCH_JOB}`);
      assertTooMany(
        await jobs.call('POST', `cancel/${NO_SUCH_JOB}`),
        /^too many requests: at most 100 of cancel in 10 s/,
      );
      assertTooMany(await jobs.call('POST', `cancel/${await jobs.run()}`), /cancel/);
      assert.equal((await jobs.health()).jobs.inQueue, 1);
    });

    test('hold for no worker', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      await Promise.all(
        Array.from({ length: 300 }, async () => assert.equal((await worker.ping()).status, 200)),
      );
      worker.close();
    });
  });
}

describe('many submissions', () => {
  const fixture = serverFixture('sqlite');

  test('up to a thousand in ten seconds are taken, and the next makes no job', async (context) => {
    const database = await createTestDatabase('sqlite');
    context.after(() => database.drop());
    const server = await startInProcessApp(database, new ManualClock());
    context.after(() => server.close());
    const jobs = await createQueueEndpoint(server.url, server.key);
    const submit = (): Promise<ApiResponse<unknown>[]> =>
      Promise.all(Array.from({ length: 100 }, () => jobs.call('POST', 'run', { input: {} })));
    for (let round = 0; round < 10; round += 1)
      for (const { status, text } of await submit()) assert.equal(status, 200, text);
    for (const refused of await submit())
      assertTooMany(refused, /^too many requests: at most 1000 of run in 10 s/);
    assert.equal((await jobs.health()).jobs.inQueue, 1_000);
  });

  test('more than two hundred at the same time are too many', async () => {
    const jobs = await createQueueEndpoint(fixture.server.url, fixture.server.key);
    const held = Promise.withResolvers<void>();
    const body = (): ReadableStream<Uint8Array> =>
      new ReadableStream({
        start: async (controller) => {
          controller.enqueue(new TextEncoder().encode('{"input":'));
          await held.promise;
          controller.enqueue(new TextEncoder().encode('{}}'));
          controller.close();
        },
      });
    const slow = Array.from({ length: 200 }, () =>
      fetch(`${fixture.server.url}/v2/${jobs.id}/run`, {
        method: 'POST',
        headers: { authorization: jobs.key },
        body: body(),
        duplex: 'half',
      }),
    );
    await waitUntilPasses(async () =>
      assertTooMany(
        await jobs.call('POST', 'run', { input: {} }),
        /^too many requests: at most 200 of run at the same time; try again in 1 s$/,
      ),
    );
    held.resolve();
    for (const answer of await Promise.all(slow)) assert.equal(answer.status, 200);
    assert.equal((await jobs.call('POST', 'run', { input: {} })).status, 200);
  });
});

describe('rate limits that are off', () => {
  const fixture = serverFixture('sqlite', { BERTH_RATE_LIMITS: 'off' });

  test('refuse nothing', async () => {
    const jobs = await createQueueEndpoint(fixture.server.url, fixture.server.key);
    for (let call = 0; call < 6; call += 1)
      assert.equal((await jobs.call('POST', 'purge-queue')).status, 200);
    for (let call = 0; call < 30; call += 1) assert.equal((await jobs.call('GET', 'requests')).status, 200);
  });
});

describe('rate limits that the operator sets', () => {
  const fixture = serverFixture('sqlite', {
    BERTH_JOB_LIMITS_RUN: '3/2',
    BERTH_JOB_LIMITS_PURGE_QUEUE: 'off',
    BERTH_JOB_LIMITS_STATUS_SYNC: '100/1',
  });

  test('hold for their operation, in ten seconds and at the same time; one that is off refuses nothing', async () => {
    const jobs = await createQueueEndpoint(fixture.server.url, fixture.server.key);
    for (let call = 0; call < 10; call += 1)
      assert.equal((await jobs.call('POST', 'purge-queue')).status, 200);
    const ids = [await jobs.run(), await jobs.run(), await jobs.run()];
    assertTooMany(
      await jobs.call('POST', 'run', { input: {} }),
      /^too many requests: at most 3 of run in 10 s/,
    );
    assert.equal((await jobs.health()).jobs.inQueue, 3);
    const waiting = jobs.call('GET', `status-sync/${ids[0]}?wait=5000`);
    await waitUntilPasses(async () =>
      assertTooMany(
        await jobs.call('GET', `status-sync/${ids[1]}?wait=1000`),
        /^too many requests: at most 1 of status-sync at the same time; try again in 1 s$/,
      ),
    );
    await jobs.call('POST', `cancel/${ids[0]}`);
    assert.equal((await waiting).body.status, 'CANCELLED');
    assert.equal((await jobs.call('GET', `status-sync/${ids[0]}`)).status, 200);
    // The other operations have theirs.
    for (let call = 0; call < 10; call += 1) await jobs.call('GET', 'requests');
    assertTooMany(await jobs.call('GET', 'requests'), /at most 10 of requests in 10 s/);
  });
});
