import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { ApiResponse } from '../packages/testing/src/api-client.ts';
import { DATABASES } from '../packages/testing/src/test-database.ts';
import {
  assertJobApiError,
  createQueueEndpoint,
  NO_SUCH_JOB,
  WAKEUP_LIMIT_MS,
  measureTime,
} from '../packages/testing/src/queue-endpoint-client.ts';
import type { JobView, QueueEndpointClient } from '../packages/testing/src/queue-endpoint-client.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';

const JOB_ID = /^(sync-)?[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}-u1$/;

for (const kind of DATABASES) {
  describe(`jobs, on ${kind}`, { concurrency: true }, () => {
    const fixture = serverFixture(kind, { BERTH_RATE_LIMITS: 'off' });
    let ann: TestAccount;
    before(async () => {
      ann = await fixture.createAccount('ann');
    });
    const endpoint = (settings: Record<string, unknown> = {}): Promise<QueueEndpointClient> =>
      createQueueEndpoint(fixture.server.url, ann.key, settings);

    test('run answers with an id immediately; status has the rest', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker('w-1');
      const made = await jobs.call('POST', 'run', { input: { prompt: 'hello' } });
      assert.equal(made.status, 200);
      assert.equal(made.headers.get('content-type'), 'application/json; charset=utf-8');
      const { id } = made.body;
      assert.deepEqual(made.body, { id, status: 'IN_QUEUE' });
      assert.match(id, JOB_ID);
      assert.ok(!id.startsWith('sync-'));
      assert.deepEqual(await jobs.status(id), {
        id,
        status: 'IN_QUEUE',
        input: { prompt: 'hello' },
        reason: 'no worker is wanted: the maximum of this endpoint is 0',
      });

      const given = await worker.take();
      assert.deepEqual(given, { id, input: { prompt: 'hello' } });
      const running = await jobs.status(id);
      assert.ok(Number.isInteger(running.delayTime));
      assert.deepEqual(running, {
        id,
        status: 'IN_PROGRESS',
        delayTime: running.delayTime,
        workerId: 'w-1',
        input: { prompt: 'hello' },
      });

      assert.equal((await worker.done(id, { output: { text: 'world' } })).status, 200);
      const done = await jobs.status(id);
      assert.ok(Number.isInteger(done.executionTime) && (done.executionTime ?? -1) >= 0);
      assert.deepEqual(done, {
        id,
        status: 'COMPLETED',
        delayTime: running.delayTime,
        executionTime: done.executionTime,
        workerId: 'w-1',
        output: { text: 'world' },
      });
      worker.close();
    });

    test('delayTime is the time in the queue and executionTime the time with the worker, in milliseconds', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const { took, result: id } = await measureTime(async () => {
        const { body } = await jobs.runSync({}, 1000);
        await worker.take();
        await jobs.call('GET', `status-sync/${body.id}?wait=1000`);
        await worker.done(body.id, {});
        return body.id;
      });
      const { delayTime = 0, executionTime = 0 } = await jobs.status(id);
      assert.ok(
        delayTime >= 990 && executionTime >= 990 && delayTime + executionTime <= took + 5,
        `${delayTime} and ${executionTime} of ${took}`,
      );
      worker.close();
    });

    test('runsync answers with the result', async () => {
      const jobs = await endpoint();
      const working = jobs.worker('w-1').startWorkLoop(({ input }) => ({ echo: input }));
      const { status, body } = await jobs.runSync({ n: 1 });
      assert.equal(status, 200);
      assert.match(body.id, JOB_ID);
      assert.ok(body.id.startsWith('sync-'));
      assert.deepEqual(body, {
        id: body.id,
        status: 'COMPLETED',
        delayTime: body.delayTime,
        executionTime: body.executionTime,
        workerId: 'w-1',
        output: { echo: { n: 1 } },
      });
      assert.deepEqual(await jobs.status(body.id), body);
      await working.stop();
    });

    test('runsync answers a job that fails with 200 and its error', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const [{ status, body }] = await Promise.all([
        jobs.runSync(),
        worker.take().then(({ id }) => worker.done(id, { error: 'out of memory', output: { step: 3 } })),
      ]);
      assert.equal(status, 200);
      assert.deepEqual([body.status, body.error, body.output], ['FAILED', 'out of memory', { step: 3 }]);
      worker.close();
    });

    test('runsync answers with a result that is not kept at all', async () => {
      const jobs = await endpoint();
      const working = jobs.worker().startWorkLoop(() => 5);
      const { status, body } = await jobs.runSync({}, 60_000, { retention: 0 });
      assert.deepEqual([status, body.status, body.output], [200, 'COMPLETED', 5]);
      assertJobApiError(await jobs.call('GET', `status/${body.id}`), 404, /^job not found/);
      await working.stop();
    });

    test('runsync answers with the live job when the wait runs out, and the job goes on', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const waiting = await measureTime(() => jobs.runSync({ n: 1 }, 1000));
      assert.ok(waiting.took >= 990 && waiting.took < 1_000 + WAKEUP_LIMIT_MS, `waited ${waiting.took} ms`);
      const { id } = waiting.result.body;
      assert.deepEqual(
        [waiting.result.status, waiting.result.body.status, waiting.result.body.delayTime],
        [200, 'IN_QUEUE', undefined],
      );
      await worker.take();
      const [running] = await Promise.all([jobs.runSync({ n: 2 }, 1000), worker.poll({ busy: true })]);
      assert.equal(running.body.status, 'IN_PROGRESS');
      assert.ok(Number.isInteger(running.body.delayTime));
      for (const job of [id, running.body.id]) {
        await worker.done(job, { output: 'late' });
        assert.deepEqual((await jobs.status(job)).output, 'late');
      }
      worker.close();
    });

    test('wait is moved into its bounds, and must be a number', async () => {
      const jobs = await endpoint();
      for (const wait of ['abc', '', '1e3', '0x10', '1s', 'Infinity'])
        assertJobApiError(
          await jobs.call('POST', `runsync?wait=${wait}`, { input: {} }),
          400,
          /^wait must be a number of milliseconds/,
        );
      assertJobApiError(await jobs.call('GET', `status-sync/${NO_SUCH_JOB}?wait=abc`), 400, /^wait must be/);
      for (const wait of [1, -5, 0]) {
        const { took, result } = await measureTime(() => jobs.runSync({}, wait));
        assert.ok(took >= 990 && took < 1_000 + WAKEUP_LIMIT_MS, `wait=${wait} took ${took} ms`);
        assert.equal(result.body.status, 'IN_QUEUE');
      }
      await jobs.call('POST', 'purge-queue');
      const working = jobs.worker().startWorkLoop(() => 1);
      assert.equal((await jobs.runSync({}, 999_999_999)).body.status, 'COMPLETED');
      await working.stop();
    });

    test('a client that goes away does not cancel its job', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const leaving = new AbortController();
      const call = fetch(`${fixture.server.url}/v2/${jobs.id}/runsync`, {
        method: 'POST',
        headers: { authorization: jobs.key },
        body: '{"input":{}}',
        signal: leaving.signal,
      });
      const { id } = await worker.take();
      leaving.abort();
      await assert.rejects(call);
      assert.equal((await jobs.status(id)).status, 'IN_PROGRESS');
      await worker.done(id, { output: 1 });
      assert.equal((await jobs.status(id)).status, 'COMPLETED');
      worker.close();
    });

    test('a request that breaks off in the middle makes no job and no noise', async () => {
      const jobs = await endpoint();
      for (const path of ['run', 'runsync', `cancel/${NO_SUCH_JOB}`]) {
        const leaving = new AbortController();
        const sent = Promise.withResolvers<void>();
        const body = new ReadableStream({
          start: (controller) => controller.enqueue(new TextEncoder().encode('{"input":')),
          pull: () => {
            sent.resolve();
            return new Promise(() => undefined);
          },
        });
        const call = fetch(`${fixture.server.url}/v2/${jobs.id}/${path}`, {
          method: 'POST',
          headers: { authorization: jobs.key },
          body,
          duplex: 'half',
          signal: leaving.signal,
        });
        await sent.promise;
        await jobs.health();
        leaving.abort();
        await assert.rejects(call);
      }
      assert.equal((await jobs.health()).jobs.inQueue, 0);
    });

    test('status-sync waits for the end, no longer than asked', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const id = await jobs.run();
      const { took, result } = await measureTime(() => jobs.call('GET', `status-sync/${id}?wait=1000`));
      assert.ok(took >= 990 && took < 1_000 + WAKEUP_LIMIT_MS, `took ${took} ms`);
      assert.deepEqual(
        [result.body.status, result.body.reason],
        ['IN_QUEUE', 'no worker is wanted: the maximum of this endpoint is 0'],
      );
      assert.equal((await jobs.runSync({}, 1000)).body.reason, result.body.reason);
      await worker.take();
      let ended = false;
      const waiting = jobs.call('GET', `status-sync/${id}?wait=30000`).finally(() => (ended = true));
      await jobs.status(id);
      assert.equal(ended, false);
      const [answer] = await Promise.all([measureTime(() => waiting), worker.done(id, { output: 7 })]);
      assert.ok(answer.took < WAKEUP_LIMIT_MS, `woken after ${answer.took} ms`);
      assert.deepEqual([answer.result.body.status, answer.result.body.output], ['COMPLETED', 7]);
      assert.deepEqual((await jobs.call('GET', `status-sync/${id}`)).body, answer.result.body);
      worker.close();
    });

    test('progress shows as the output while the job runs', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const id = await jobs.run();
      await worker.take();
      await worker.progress(id, { percent: 40 });
      assert.deepEqual(
        [(await jobs.status(id)).status, (await jobs.status(id)).output],
        ['IN_PROGRESS', { percent: 40 }],
      );
      await worker.done(id, { output: 'all' });
      await worker.progress(id, { percent: 90 });
      assert.deepEqual(
        [(await jobs.status(id)).status, (await jobs.status(id)).output],
        ['COMPLETED', 'all'],
      );
      worker.close();
    });

    test('health counts jobs and workers', async () => {
      const jobs = await endpoint();
      const nothing = { idle: 0, initializing: 0, ready: 0, running: 0, throttled: 0, unhealthy: 0 };
      assert.deepEqual(await jobs.health(), {
        jobs: { completed: 0, failed: 0, inProgress: 0, inQueue: 0, retried: 0 },
        workers: nothing,
      });
      const [busy, idle, sick] = [jobs.worker(), jobs.worker(), jobs.worker()];
      const ids = [await jobs.run(), await jobs.run(), await jobs.run(), await jobs.run()];
      await busy.pollBatch(3);
      await busy.done(ids[0] ?? '', { output: 1 });
      await busy.done(ids[1] ?? '', { error: 'no' });
      await idle.ping();
      await sick.ping([], '&status=unhealthy&check=_disk_check&reason=full');
      assert.deepEqual(await jobs.health(), {
        jobs: { completed: 1, failed: 1, inProgress: 1, inQueue: 1, retried: 0 },
        workers: { ...nothing, idle: 1, ready: 2, running: 1, unhealthy: 1 },
      });
      for (const worker of [busy, idle, sick]) worker.close();
    });

    test('requests lists jobs, the newest first, the failed ones with their input and error', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker('w-1');
      const ids = [
        await jobs.run({ n: 0 }),
        await jobs.run(
          { n: 1 },
          {
            s3Config: {
              accessId: 'id',
              accessSecret: 'hush',
              bucketName: 'b',
              endpointUrl: 'https://s3.example',
            },
          },
        ),
        await jobs.run({ n: 2 }),
      ];
      await worker.pollBatch(2);
      await worker.done(ids[0] ?? '', { output: 'zero' });
      await worker.done(ids[1] ?? '', { error: 'one failed' });
      type Requests = { requests: (JobView & { createdAt: string })[] };
      const all = await jobs.call<Requests>('GET', 'requests');
      assert.equal(all.status, 200);
      assert.deepEqual(
        all.body.requests.map(({ id, status, input, output, error }) => ({
          id,
          status,
          input,
          output,
          error,
        })),
        [
          { id: ids[2], status: 'IN_QUEUE', input: { n: 2 }, output: undefined, error: undefined },
          { id: ids[1], status: 'FAILED', input: { n: 1 }, output: undefined, error: 'one failed' },
          { id: ids[0], status: 'COMPLETED', input: { n: 0 }, output: 'zero', error: undefined },
        ],
      );
      assert.ok(!all.text.includes('hush'));
      assert.ok(all.body.requests.every(({ createdAt }) => !Number.isNaN(Date.parse(createdAt))));
      assert.deepEqual(
        (await jobs.call<Requests>('GET', 'requests?status=FAILED')).body.requests.map(({ id }) => id),
        [ids[1]],
      );
      assert.deepEqual(
        (await jobs.call<Requests>('GET', 'requests?limit=1&offset=1')).body.requests.map(({ id }) => id),
        [ids[1]],
      );
      assertJobApiError(
        await jobs.call('GET', 'requests?status=RUNNING'),
        400,
        /^status must be one of IN_QUEUE/,
      );
      assertJobApiError(await jobs.call('GET', 'requests?limit=many'), 400, /^limit must be a whole number$/);
      worker.close();
    });

    test('an Idempotency-Key makes one job of many requests', async () => {
      const jobs = await endpoint();
      const submit = (key: string, body: unknown, path = 'run'): Promise<ApiResponse<JobView>> =>
        jobs.call('POST', path, body, { 'idempotency-key': key });
      const first = await submit('a', { input: 1 });
      assert.deepEqual((await submit('a', { input: 1 })).body, first.body);
      assertJobApiError(
        await submit('a', { input: 2 }),
        409,
        /^this Idempotency-Key was used with another body/,
      );
      assert.notEqual((await submit('b', { input: 1 })).body.id, first.body.id);
      const together = await Promise.all(Array.from({ length: 20 }, () => submit('c', { input: 3 })));
      assert.equal(new Set(together.map(({ body }) => body.id)).size, 1);
      const mixed = await Promise.all(Array.from({ length: 10 }, (_, n) => submit('d', { input: n % 2 })));
      assert.equal(new Set(mixed.filter(({ status }) => status === 200).map(({ body }) => body.id)).size, 1);
      assert.equal(mixed.filter(({ status }) => status === 409).length, 5);
      assert.equal((await jobs.health()).jobs.inQueue, 4);
      assert.notEqual(
        (await (await endpoint()).call('POST', 'run', { input: 2 }, { 'idempotency-key': 'a' })).body.id,
        first.body.id,
      );
      assert.equal((await submit('x'.repeat(255), { input: 2 })).status, 200);
      assertJobApiError(
        await submit('x'.repeat(256), { input: 2 }),
        400,
        /^an Idempotency-Key has at most 255 characters$/,
      );
      // Later, and in whatever state the job is by then, the same request finds the same job.
      const worker = jobs.worker();
      await worker.pollBatch(10);
      await worker.done(first.body.id, { output: 'once' });
      assert.deepEqual((await submit('a', { input: 1 })).body, { id: first.body.id, status: 'COMPLETED' });
      const { took, result } = await measureTime(() => submit('a', { input: 1 }, 'runsync?wait=60000'));
      assert.deepEqual([result.body.id, result.body.output], [first.body.id, 'once']);
      assert.ok(took < WAKEUP_LIMIT_MS, `answered after ${took} ms`);
      assert.equal((await submit('a', { input: 1 }, 'runsync')).body.output, 'once');
      worker.close();
    });

    test('jobs go out in the order in which they came, those of low priority last', async () => {
      const jobs = await endpoint();
      const low = [
        await jobs.run({}, { policy: { lowPriority: true } }),
        await jobs.run({}, { policy: { lowPriority: true } }),
      ];
      const normal = [];
      for (let n = 0; n < 8; n += 1) normal.push(await jobs.run({ n }));
      const worker = jobs.worker();
      const order = [
        await worker.take(),
        ...(await worker.pollBatch(4, { busy: true })).body,
        ...(await worker.pollBatch(20, { busy: true })).body,
      ].map(({ id }) => id);
      assert.deepEqual(order, [...normal, ...low]);
      worker.close();
    });

    test('a waiting job says why it waits', async () => {
      const jobs = await endpoint();
      const reason = async (id: string): Promise<string | undefined> => (await jobs.status(id)).reason;
      const first = await jobs.run();
      assert.equal(await reason(first), 'no worker is wanted: the maximum of this endpoint is 0');
      const worker = jobs.worker();
      await worker.take();
      assert.equal(await reason(first), undefined);
      const waiting = [
        await jobs.run(),
        await jobs.run(),
        await jobs.run({}, { policy: { lowPriority: true } }),
      ];
      assert.deepEqual(await Promise.all(waiting.map(reason)), [
        'next in line: 1 worker is busy',
        'held behind 1 job',
        'held behind 2 jobs',
      ]);
      await jobs.worker().ping();
      assert.equal(
        await reason(waiting[0] ?? ''),
        'next in line: 1 worker is busy, 1 worker is idle and has not asked for a job yet',
      );
      await worker.done(first, { output: 1 });
      assert.equal(
        await reason(waiting[0] ?? ''),
        'next in line: 2 workers are idle and have not asked for a job yet',
      );
      const { idle, running } = (await jobs.health()).workers;
      assert.deepEqual([idle, running], [2, 0]);
      worker.close();
    });
  });
}
