import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { DATABASES } from '../packages/testing/src/test-database.ts';
import {
  assertJobApiError,
  createQueueEndpoint,
  NO_SUCH_JOB,
  WAKEUP_LIMIT_MS,
  measureTime,
} from '../packages/testing/src/queue-endpoint-client.ts';
import type { QueueEndpointClient } from '../packages/testing/src/queue-endpoint-client.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';
import { waitUntilPasses } from '../packages/testing/src/wait-for.ts';

for (const kind of DATABASES) {
  describe(`what becomes of a job, on ${kind}`, { concurrency: true }, () => {
    const fixture = serverFixture(kind, { BERTH_RATE_LIMITS: 'off' });
    let ann: TestAccount;
    before(async () => {
      ann = await fixture.createAccount('ann');
    });
    const endpoint = (settings: Record<string, unknown> = {}): Promise<QueueEndpointClient> =>
      createQueueEndpoint(fixture.server.url, ann.key, settings);

    test('cancel takes a waiting job out of the queue', async () => {
      const jobs = await endpoint();
      const cancelled = await jobs.run();
      const kept = await jobs.run();
      const answer = await jobs.call('POST', `cancel/${cancelled}`, undefined, {
        'content-type': 'application/json',
      });
      assert.deepEqual([answer.status, answer.body], [200, { id: cancelled, status: 'CANCELLED' }]);
      const { status, delayTime, executionTime } = await jobs.status(cancelled);
      assert.deepEqual(
        { status, delayTime, executionTime },
        { status: 'CANCELLED', delayTime: 0, executionTime: 0 },
      );
      const worker = jobs.worker();
      assert.deepEqual(
        (await worker.pollBatch(10)).body.map(({ id }) => id),
        [kept],
      );
      worker.close();
    });

    test('cancel ends a running job, notifies its worker, and a late result changes nothing', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const caller = jobs.runSync({});
      const { id } = await worker.take();
      await worker.progress(id, 'half');
      const stopping = worker.stops();
      const answer = await jobs.call('POST', `cancel/${id}`, {});
      assert.deepEqual([answer.status, answer.body], [200, { id, status: 'CANCELLED' }]);
      assert.deepEqual((await stopping).body, { jobsToStop: [id] });
      assert.deepEqual(
        [(await caller).status, (await caller).body.status, (await caller).body.output],
        [200, 'CANCELLED', undefined],
      );
      assert.equal((await worker.done(id, { output: 'late' })).status, 200);
      assert.deepEqual(
        [(await jobs.status(id)).status, (await jobs.status(id)).output],
        ['CANCELLED', undefined],
      );
      worker.close();
    });

    test('cancel of an ended job answers with its status; of an unknown one 404', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const id = await jobs.run();
      await worker.take();
      await worker.done(id, { output: 1 });
      for (let time = 0; time < 2; time += 1)
        assert.deepEqual((await jobs.call('POST', `cancel/${id}`)).body, { id, status: 'COMPLETED' });
      assert.equal((await jobs.status(id)).output, 1);
      assertJobApiError(await jobs.call('POST', `cancel/${NO_SUCH_JOB}`), 404, /^job not found/);
      worker.close();
    });

    test('retry sends a failed job back, as it first came, to the end of the queue', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const id = await jobs.run({ n: 1 }, { extra: true });
      await worker.take();
      await worker.chunk(id, { output: 'piece' });
      await worker.done(id, { error: 'no', output: 'half' });
      const other = await jobs.run();
      const answer = await jobs.call('POST', `retry/${id}`, undefined, {
        'content-type': 'application/json',
      });
      assert.deepEqual([answer.status, answer.body], [200, { id, status: 'IN_QUEUE' }]);
      const { reason, ...shown } = await jobs.status(id);
      assert.deepEqual(shown, { id, status: 'IN_QUEUE', input: { n: 1 } });
      assert.equal(reason, 'held behind 1 job');
      assert.deepEqual((await worker.pollBatch(5)).body, [
        { id: other, input: {} },
        { id, input: { n: 1 }, extra: true },
      ]);
      await worker.done(id, { output: 'good' });
      assert.deepEqual([(await jobs.status(id)).output, (await jobs.status(id)).error], ['good', undefined]);
      assert.deepEqual((await jobs.call('GET', `stream/${id}`)).body, [{ output: 'good' }]);
      worker.close();
    });

    test('retry is refused in every other state, and of what is not there', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const [running, completed, cancelled, waiting] = [
        await jobs.run(),
        await jobs.run(),
        await jobs.run(),
        await jobs.run(),
      ];
      await worker.pollBatch(2);
      await worker.done(completed, { output: 1 });
      await jobs.call('POST', `cancel/${cancelled}`);
      for (const [id, status] of [
        [waiting, 'IN_QUEUE'],
        [running, 'IN_PROGRESS'],
        [completed, 'COMPLETED'],
        [cancelled, 'CANCELLED'],
      ] as const) {
        assertJobApiError(
          await jobs.call('POST', `retry/${id}`),
          400,
          new RegExp(`^only a FAILED or TIMED_OUT job can be retried; this one is ${status}$`),
        );
        assert.equal((await jobs.status(id)).status, status);
      }
      assert.equal((await jobs.status(completed)).output, 1);
      assertJobApiError(await jobs.call('POST', `retry/${NO_SUCH_JOB}`), 404, /^job not found/);
      worker.close();
    });

    test('a job that runs too long is TIMED_OUT, its worker is notified, and it may be retried', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const caller = measureTime(() => jobs.runSync({}, 60_000, { policy: { executionTimeout: 1 } }));
      const { id } = await worker.take();
      const stopping = worker.stops();
      const { took, result } = await caller;
      assert.ok(
        took >= 4_990 && took < 5_000 + WAKEUP_LIMIT_MS,
        `the least execution timeout is 5 s, took ${took} ms`,
      );
      assert.deepEqual(
        [result.status, result.body.status, result.body.error],
        [200, 'TIMED_OUT', 'the job ran longer than its execution timeout of 5000 ms'],
      );
      assert.deepEqual((await stopping).body, { jobsToStop: [id] });
      await worker.done(id, { output: 'late' });
      assert.equal((await jobs.status(id)).status, 'TIMED_OUT');
      assert.equal((await jobs.health()).jobs.failed, 1);
      assert.deepEqual((await jobs.call('POST', `retry/${id}`)).body, { id, status: 'IN_QUEUE' });
      await worker.take();
      await worker.done(id, { output: 'in time' });
      assert.equal((await jobs.status(id)).output, 'in time');
      worker.close();
    });

    test("an endpoint's own execution timeout counts where the request names none", async () => {
      const jobs = await endpoint({ timeout: 5000 });
      const worker = jobs.worker();
      const [short, long] = [await jobs.run(), await jobs.run({}, { policy: { executionTimeout: 60_000 } })];
      await worker.pollBatch(2);
      assert.equal((await jobs.waitForEnd(short)).status, 'TIMED_OUT');
      assert.equal((await jobs.status(long)).status, 'IN_PROGRESS');
      worker.close();
    });

    test('a job whose time to live is over is gone, waiting or running', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const running = await jobs.run({}, { policy: { ttl: 1 } });
      await worker.take();
      const waiting = await jobs.run({}, { policy: { ttl: 10_000 } });
      const lasting = await jobs.run();
      // The time to live may be set later, counted from then.
      assert.equal((await jobs.call('GET', `status/${lasting}?ttl=1`)).body.status, 'IN_QUEUE');
      const stopping = worker.stops();
      const caller = jobs.call('GET', `status-sync/${waiting}?wait=60000`);
      assert.deepEqual((await stopping).body, { jobsToStop: [running] });
      // Whoever waits for it is told; from then on it is unknown.
      const { status, body } = await caller;
      assert.deepEqual(
        [status, body.status, body.error],
        [200, 'TIMED_OUT', 'the time to live of the job is over'],
      );
      for (const id of [running, waiting, lasting]) {
        await waitUntilPasses(async () =>
          assertJobApiError(
            await jobs.call('GET', `status/${id}`),
            404,
            /is unknown or its result has expired$/,
          ),
        );
        assertJobApiError(await jobs.call('POST', `retry/${id}`), 404, /^job not found/);
      }
      assert.deepEqual((await jobs.health()).jobs, {
        completed: 0,
        failed: 3,
        inProgress: 0,
        inQueue: 0,
        retried: 0,
      });
      assertJobApiError(
        await jobs.call('GET', `status/${await jobs.run()}?ttl=soon`),
        400,
        /^ttl must be a number of milliseconds, got "soon"$/,
      );
      worker.close();
    });

    test('a result is kept as long as the request or the endpoint says', async () => {
      const [jobs, brief] = [await endpoint(), await endpoint({ retention: 1000 })];
      const [worker, other] = [jobs.worker(), brief.worker()];
      const [gone, kept] = [
        await jobs.run({}, { retention: 0 }),
        await jobs.run({}, { policy: { ttl: 60_000 } }),
      ];
      await worker.pollBatch(2);
      for (const id of [gone, kept]) await worker.done(id, { error: 'no' });
      const [byEndpoint, byRequest] = [await brief.run(), await brief.run({}, { retention: 60_000 })];
      await other.pollBatch(2);
      for (const id of [byEndpoint, byRequest]) await other.done(id, { error: 'no' });
      await waitUntilPasses(async () =>
        assertJobApiError(await jobs.call('GET', `status/${gone}`), 404, /^job not found/),
      );
      assertJobApiError(await jobs.call('POST', `retry/${gone}`), 404, /^job not found/);
      assertJobApiError(await jobs.call('GET', `stream/${gone}`), 404, /not found/);
      await waitUntilPasses(async () =>
        assertJobApiError(await brief.call('GET', `status/${byEndpoint}`), 404, /^job not found/),
      );
      assert.equal((await jobs.status(kept)).status, 'FAILED');
      assert.equal((await brief.status(byRequest)).status, 'FAILED');
      worker.close();
      other.close();
    });

    test('purge removes queued jobs and nothing else, and wakes their waiting callers', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const running = await jobs.run();
      await worker.take();
      const caller = jobs.runSync({});
      const waiting = [await jobs.run(), await jobs.run({}, { policy: { lowPriority: true } })];
      await waitUntilPasses(async () => assert.equal((await jobs.health()).jobs.inQueue, 3));
      const answer = await jobs.call<{ removed: number; status: string }>('POST', 'purge-queue', undefined, {
        'content-type': 'application/json',
      });
      assert.deepEqual([answer.status, answer.body], [200, { removed: 3, status: 'completed' }]);
      const { took, result } = await measureTime(() => caller);
      assert.ok(took < WAKEUP_LIMIT_MS, `told after ${took} ms`);
      assertJobApiError(result, 404, /^job not found/);
      for (const id of waiting)
        assertJobApiError(await jobs.call('GET', `status/${id}`), 404, /^job not found/);
      assert.deepEqual((await jobs.call('POST', 'purge-queue', {})).body, {
        removed: 0,
        status: 'completed',
      });
      assert.equal((await jobs.status(running)).status, 'IN_PROGRESS');
      await worker.done(running, { output: 1 });
      assert.deepEqual((await jobs.health()).jobs, {
        completed: 1,
        failed: 0,
        inProgress: 0,
        inQueue: 0,
        retried: 0,
      });
      worker.close();
    });

    test('a deleted endpoint takes its jobs along', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const running = await jobs.run();
      await worker.take();
      const caller = jobs.runSync({}, 60_000);
      const stopping = worker.stops();
      await waitUntilPasses(async () => assert.equal((await jobs.health()).jobs.inQueue, 1));
      assert.equal((await ann.call('DELETE', `/v2/serverless/${jobs.id}`)).status, 204);
      assertJobApiError(await caller, 404, /not found/);
      assert.deepEqual((await stopping).body, { jobsToStop: [running] });
      assertJobApiError(await jobs.call('GET', `status/${running}`), 404, /^endpoint/);
      worker.close();
    });
  });
}
