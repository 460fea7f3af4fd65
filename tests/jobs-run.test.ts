import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { clientOf } from './support/client.ts';
import type { Answer } from './support/client.ts';
import { DATABASES } from './support/databases.ts';
import { endpointOf, eventually, newEndpoint, PROMPT_MS, timed } from './support/jobs.ts';
import type { JobView, TestEndpoint } from './support/jobs.ts';
import { stageOn } from './support/story.ts';
import type { TestAccount } from './support/story.ts';

const MEGABYTE = 1024 * 1024;
const JOB_ID = /^(sync-)?[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}-u1$/;
const NO_SUCH_JOB = '00000000-0000-8000-8000-000000000000-u1';

/** Every failure of the job interface looks like this. */
function assertRefused(answer: Answer<unknown>, status: number, text: RegExp): void {
  assert.equal(answer.status, status, answer.text);
  assert.equal(answer.headers.get('content-type'), 'application/json; charset=utf-8');
  assert.deepEqual(Object.keys(answer.body as object), ['error']);
  assert.match((answer.body as { error: string }).error, text);
}

/** A body of exactly this many bytes. */
function bodyOf(bytes: number): string {
  const empty = '{"input":""}';
  return `{"input":"${'x'.repeat(bytes - empty.length)}"}`;
}

for (const kind of DATABASES) {
  describe(`jobs, on ${kind}`, { concurrency: true }, () => {
    const stage = stageOn(kind, { BERTH_RATE_LIMITS: 'off' });
    let ann: TestAccount;
    before(async () => {
      ann = await stage.account('ann');
    });
    const endpoint = (settings: Record<string, unknown> = {}): Promise<TestEndpoint> => newEndpoint(stage.server.url, ann.key, settings);
    const keyOf = async (settings: Record<string, unknown>): Promise<string> => (await ann.call<{ key: string }>('POST', '/v2/account/api-keys', { name: 'other', ...settings })).body.key;

    test('run answers with an id at once; status tells the rest', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker('w-1');
      const made = await jobs.call('POST', 'run', { input: { prompt: 'hello' } });
      assert.equal(made.status, 200);
      assert.equal(made.headers.get('content-type'), 'application/json; charset=utf-8');
      const { id } = made.body;
      assert.deepEqual(made.body, { id, status: 'IN_QUEUE' });
      assert.match(id, JOB_ID);
      assert.ok(!id.startsWith('sync-'));
      assert.deepEqual(await jobs.status(id), { id, status: 'IN_QUEUE', input: { prompt: 'hello' }, reason: 'no worker is wanted: the maximum of this endpoint is 0' });

      const given = await worker.take();
      assert.deepEqual(given, { id, input: { prompt: 'hello' } });
      const running = await jobs.status(id);
      assert.ok(Number.isInteger(running.delayTime));
      assert.deepEqual(running, { id, status: 'IN_PROGRESS', delayTime: running.delayTime, workerId: 'w-1', input: { prompt: 'hello' } });

      assert.equal((await worker.done(id, { output: { text: 'world' } })).status, 200);
      const done = await jobs.status(id);
      assert.ok(Number.isInteger(done.executionTime) && (done.executionTime ?? -1) >= 0);
      assert.deepEqual(done, { id, status: 'COMPLETED', delayTime: running.delayTime, executionTime: done.executionTime, workerId: 'w-1', output: { text: 'world' } });
      worker.close();
    });

    test('delayTime is the time in the queue and executionTime the time with the worker, in milliseconds', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const { took, result: id } = await timed(async () => {
        const { body } = await jobs.runSync({}, 1000);
        await worker.take();
        await jobs.call('GET', `status-sync/${body.id}?wait=1000`);
        await worker.done(body.id, {});
        return body.id;
      });
      const { delayTime = 0, executionTime = 0 } = await jobs.status(id);
      assert.ok(delayTime >= 990 && executionTime >= 990 && delayTime + executionTime <= took + 5, `${delayTime} and ${executionTime} of ${took}`);
      worker.close();
    });

    test('runsync answers with the result', async () => {
      const jobs = await endpoint();
      const working = jobs.worker('w-1').work(({ input }) => ({ echo: input }));
      const { status, body } = await jobs.runSync({ n: 1 });
      assert.equal(status, 200);
      assert.match(body.id, JOB_ID);
      assert.ok(body.id.startsWith('sync-'));
      assert.deepEqual(body, { id: body.id, status: 'COMPLETED', delayTime: body.delayTime, executionTime: body.executionTime, workerId: 'w-1', output: { echo: { n: 1 } } });
      assert.deepEqual(await jobs.status(body.id), body);
      await working.stop();
    });

    test('runsync answers a job that fails with 200 and its error', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const [{ status, body }] = await Promise.all([jobs.runSync(), worker.take().then(({ id }) => worker.done(id, { error: 'out of memory', output: { step: 3 } }))]);
      assert.equal(status, 200);
      assert.deepEqual([body.status, body.error, body.output], ['FAILED', 'out of memory', { step: 3 }]);
      worker.close();
    });

    test('runsync answers with the live job when the wait runs out, and the job goes on', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const waiting = await timed(() => jobs.runSync({ n: 1 }, 1000));
      assert.ok(waiting.took >= 990 && waiting.took < 1_000 + PROMPT_MS, `waited ${waiting.took} ms`);
      const { id } = waiting.result.body;
      assert.deepEqual([waiting.result.status, waiting.result.body.status, waiting.result.body.delayTime], [200, 'IN_QUEUE', undefined]);
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
      for (const wait of ['abc', '', '1e3', '0x10', '1s', 'Infinity']) assertRefused(await jobs.call('POST', `runsync?wait=${wait}`, { input: {} }), 400, /^wait must be a number of milliseconds/);
      assertRefused(await jobs.call('GET', `status-sync/${NO_SUCH_JOB}?wait=abc`), 400, /^wait must be/);
      for (const wait of [1, -5, 0]) {
        const { took, result } = await timed(() => jobs.runSync({}, wait));
        assert.ok(took >= 990 && took < 1_000 + PROMPT_MS, `wait=${wait} took ${took} ms`);
        assert.equal(result.body.status, 'IN_QUEUE');
      }
      await jobs.call('POST', 'purge-queue');
      const working = jobs.worker().work(() => 1);
      assert.equal((await jobs.runSync({}, 999_999_999)).body.status, 'COMPLETED');
      await working.stop();
    });

    test('a client that goes away does not cancel its job', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const leaving = new AbortController();
      const call = fetch(`${stage.server.url}/v2/${jobs.id}/runsync`, { method: 'POST', headers: { authorization: jobs.key }, body: '{"input":{}}', signal: leaving.signal });
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
        const call = fetch(`${stage.server.url}/v2/${jobs.id}/${path}`, { method: 'POST', headers: { authorization: jobs.key }, body, duplex: 'half', signal: leaving.signal });
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
      const { took, result } = await timed(() => jobs.call('GET', `status-sync/${id}?wait=1000`));
      assert.ok(took >= 990 && took < 1_000 + PROMPT_MS, `took ${took} ms`);
      assert.equal(result.body.status, 'IN_QUEUE');
      await worker.take();
      let ended = false;
      const waiting = jobs.call('GET', `status-sync/${id}?wait=30000`).finally(() => (ended = true));
      await jobs.status(id);
      assert.equal(ended, false);
      const [answer] = await Promise.all([timed(() => waiting), worker.done(id, { output: 7 })]);
      assert.ok(answer.took < PROMPT_MS, `woken after ${answer.took} ms`);
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
      assert.deepEqual([(await jobs.status(id)).status, (await jobs.status(id)).output], ['IN_PROGRESS', { percent: 40 }]);
      await worker.done(id, { output: 'all' });
      await worker.progress(id, { percent: 90 });
      assert.deepEqual([(await jobs.status(id)).status, (await jobs.status(id)).output], ['COMPLETED', 'all']);
      worker.close();
    });

    test('cancel takes a waiting job out of the queue', async () => {
      const jobs = await endpoint();
      const cancelled = await jobs.run();
      const kept = await jobs.run();
      const answer = await jobs.call('POST', `cancel/${cancelled}`, undefined, { 'content-type': 'application/json' });
      assert.deepEqual([answer.status, answer.body], [200, { id: cancelled, status: 'CANCELLED' }]);
      const { status, delayTime, executionTime } = await jobs.status(cancelled);
      assert.deepEqual({ status, delayTime, executionTime }, { status: 'CANCELLED', delayTime: 0, executionTime: 0 });
      const worker = jobs.worker();
      assert.deepEqual((await worker.pollBatch(10)).body.map(({ id }) => id), [kept]);
      worker.close();
    });

    test('cancel ends a running job, tells its worker, and a late result changes nothing', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const caller = jobs.runSync({});
      const { id } = await worker.take();
      await worker.progress(id, 'half');
      const stopping = worker.stops();
      const answer = await jobs.call('POST', `cancel/${id}`, {});
      assert.deepEqual([answer.status, answer.body], [200, { id, status: 'CANCELLED' }]);
      assert.deepEqual((await stopping).body, { jobsToStop: [id] });
      assert.deepEqual([(await caller).status, (await caller).body.status, (await caller).body.output], [200, 'CANCELLED', undefined]);
      assert.equal((await worker.done(id, { output: 'late' })).status, 200);
      assert.deepEqual([(await jobs.status(id)).status, (await jobs.status(id)).output], ['CANCELLED', undefined]);
      worker.close();
    });

    test('cancel of a job that has ended answers with what it is; of an unknown one 404', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const id = await jobs.run();
      await worker.take();
      await worker.done(id, { output: 1 });
      for (let time = 0; time < 2; time += 1) assert.deepEqual((await jobs.call('POST', `cancel/${id}`)).body, { id, status: 'COMPLETED' });
      assert.equal((await jobs.status(id)).output, 1);
      assertRefused(await jobs.call('POST', `cancel/${NO_SUCH_JOB}`), 404, /^job not found/);
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
      const answer = await jobs.call('POST', `retry/${id}`, undefined, { 'content-type': 'application/json' });
      assert.deepEqual([answer.status, answer.body], [200, { id, status: 'IN_QUEUE' }]);
      const { reason, ...shown } = await jobs.status(id);
      assert.deepEqual(shown, { id, status: 'IN_QUEUE', input: { n: 1 } });
      assert.equal(reason, 'held behind 1 job');
      assert.deepEqual((await worker.pollBatch(5)).body, [{ id: other, input: {} }, { id, input: { n: 1 }, extra: true }]);
      await worker.done(id, { output: 'good' });
      assert.deepEqual([(await jobs.status(id)).output, (await jobs.status(id)).error], ['good', undefined]);
      assert.deepEqual((await jobs.call('GET', `stream/${id}`)).body, [{ output: 'good' }]);
      worker.close();
    });

    test('retry is refused in every other state, and of what is not there', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const [running, completed, cancelled, waiting] = [await jobs.run(), await jobs.run(), await jobs.run(), await jobs.run()];
      await worker.pollBatch(2);
      await worker.done(completed, { output: 1 });
      await jobs.call('POST', `cancel/${cancelled}`);
      for (const [id, status] of [[waiting, 'IN_QUEUE'], [running, 'IN_PROGRESS'], [completed, 'COMPLETED'], [cancelled, 'CANCELLED']] as const) {
        assertRefused(await jobs.call('POST', `retry/${id}`), 400, new RegExp(`^only a FAILED or TIMED_OUT job can be retried; this one is ${status}$`));
        assert.equal((await jobs.status(id)).status, status);
      }
      assert.equal((await jobs.status(completed)).output, 1);
      assertRefused(await jobs.call('POST', `retry/${NO_SUCH_JOB}`), 404, /^job not found/);
      worker.close();
    });

    test('a job that runs too long is TIMED_OUT, its worker is told, and it may be retried', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const caller = timed(() => jobs.runSync({}, 60_000, { policy: { executionTimeout: 1 } }));
      const { id } = await worker.take();
      const stopping = worker.stops();
      const { took, result } = await caller;
      assert.ok(took >= 4_990 && took < 5_000 + PROMPT_MS, `the least execution timeout is 5 s, took ${took} ms`);
      assert.deepEqual([result.status, result.body.status, result.body.error], [200, 'TIMED_OUT', 'the job ran longer than its execution timeout of 5000 ms']);
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
      assert.equal((await jobs.ended(short)).status, 'TIMED_OUT');
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
      assertRefused(await caller, 404, /^job not found/);
      for (const id of [running, waiting, lasting]) {
        await eventually(async () => assertRefused(await jobs.call('GET', `status/${id}`), 404, /is unknown or its result has expired$/));
        assertRefused(await jobs.call('POST', `retry/${id}`), 404, /^job not found/);
      }
      assert.deepEqual((await jobs.health()).jobs, { completed: 0, failed: 3, inProgress: 0, inQueue: 0, retried: 0 });
      assertRefused(await jobs.call('GET', `status/${await jobs.run()}?ttl=soon`), 400, /^ttl must be a number of milliseconds, got "soon"$/);
      worker.close();
    });

    test('a result is kept as long as the request or the endpoint says', async () => {
      const [jobs, brief] = [await endpoint(), await endpoint({ retention: 1000 })];
      const [worker, other] = [jobs.worker(), brief.worker()];
      const [gone, kept] = [await jobs.run({}, { retention: 0 }), await jobs.run({}, { policy: { ttl: 60_000 } })];
      await worker.pollBatch(2);
      for (const id of [gone, kept]) await worker.done(id, { error: 'no' });
      const [byEndpoint, byRequest] = [await brief.run(), await brief.run({}, { retention: 60_000 })];
      await other.pollBatch(2);
      for (const id of [byEndpoint, byRequest]) await other.done(id, { error: 'no' });
      await eventually(async () => assertRefused(await jobs.call('GET', `status/${gone}`), 404, /^job not found/));
      assertRefused(await jobs.call('POST', `retry/${gone}`), 404, /^job not found/);
      assertRefused(await jobs.call('GET', `stream/${gone}`), 404, /not found/);
      await eventually(async () => assertRefused(await brief.call('GET', `status/${byEndpoint}`), 404, /^job not found/));
      assert.equal((await jobs.status(kept)).status, 'FAILED');
      assert.equal((await brief.status(byRequest)).status, 'FAILED');
      worker.close();
      other.close();
    });

    test('purge removes what waits and nothing else, and tells who waited for it', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const running = await jobs.run();
      await worker.take();
      const caller = jobs.runSync({});
      const waiting = [await jobs.run(), await jobs.run({}, { policy: { lowPriority: true } })];
      await eventually(async () => assert.equal((await jobs.health()).jobs.inQueue, 3));
      const answer = await jobs.call<{ removed: number; status: string }>('POST', 'purge-queue', undefined, { 'content-type': 'application/json' });
      assert.deepEqual([answer.status, answer.body], [200, { removed: 3, status: 'completed' }]);
      const { took, result } = await timed(() => caller);
      assert.ok(took < PROMPT_MS, `told after ${took} ms`);
      assertRefused(result, 404, /^job not found/);
      for (const id of waiting) assertRefused(await jobs.call('GET', `status/${id}`), 404, /^job not found/);
      assert.deepEqual((await jobs.call('POST', 'purge-queue', {})).body, { removed: 0, status: 'completed' });
      assert.equal((await jobs.status(running)).status, 'IN_PROGRESS');
      await worker.done(running, { output: 1 });
      assert.deepEqual((await jobs.health()).jobs, { completed: 1, failed: 0, inProgress: 0, inQueue: 0, retried: 0 });
      worker.close();
    });

    test('health counts jobs and workers', async () => {
      const jobs = await endpoint();
      const nothing = { idle: 0, initializing: 0, ready: 0, running: 0, throttled: 0, unhealthy: 0 };
      assert.deepEqual(await jobs.health(), { jobs: { completed: 0, failed: 0, inProgress: 0, inQueue: 0, retried: 0 }, workers: nothing });
      const [busy, idle, sick] = [jobs.worker(), jobs.worker(), jobs.worker()];
      const ids = [await jobs.run(), await jobs.run(), await jobs.run(), await jobs.run()];
      await busy.pollBatch(3);
      await busy.done(ids[0] ?? '', { output: 1 });
      await busy.done(ids[1] ?? '', { error: 'no' });
      await idle.ping();
      await sick.ping([], '&status=unhealthy&check=_disk_check&reason=full');
      assert.deepEqual(await jobs.health(), { jobs: { completed: 1, failed: 1, inProgress: 1, inQueue: 1, retried: 0 }, workers: { ...nothing, idle: 1, ready: 2, running: 1, unhealthy: 1 } });
      for (const worker of [busy, idle, sick]) worker.close();
    });

    test('requests lists jobs, the newest first, the failed ones with their input and error', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker('w-1');
      const ids = [await jobs.run({ n: 0 }), await jobs.run({ n: 1 }, { s3Config: { accessId: 'id', accessSecret: 'hush', bucketName: 'b', endpointUrl: 'https://s3.example' } }), await jobs.run({ n: 2 })];
      await worker.pollBatch(2);
      await worker.done(ids[0] ?? '', { output: 'zero' });
      await worker.done(ids[1] ?? '', { error: 'one failed' });
      type Requests = { requests: (JobView & { createdAt: string })[] };
      const all = await jobs.call<Requests>('GET', 'requests');
      assert.equal(all.status, 200);
      assert.deepEqual(all.body.requests.map(({ id, status, input, output, error }) => ({ id, status, input, output, error })), [
        { id: ids[2], status: 'IN_QUEUE', input: { n: 2 }, output: undefined, error: undefined },
        { id: ids[1], status: 'FAILED', input: { n: 1 }, output: undefined, error: 'one failed' },
        { id: ids[0], status: 'COMPLETED', input: { n: 0 }, output: 'zero', error: undefined },
      ]);
      assert.ok(!all.text.includes('hush'));
      assert.ok(all.body.requests.every(({ createdAt }) => !Number.isNaN(Date.parse(createdAt))));
      assert.deepEqual((await jobs.call<Requests>('GET', 'requests?status=FAILED')).body.requests.map(({ id }) => id), [ids[1]]);
      assert.deepEqual((await jobs.call<Requests>('GET', 'requests?limit=1&offset=1')).body.requests.map(({ id }) => id), [ids[1]]);
      assertRefused(await jobs.call('GET', 'requests?status=RUNNING'), 400, /^status must be one of IN_QUEUE/);
      assertRefused(await jobs.call('GET', 'requests?limit=many'), 400, /^limit must be a whole number$/);
      worker.close();
    });

    test('the key comes with or without Bearer; every other one is refused in the same words', async () => {
      const jobs = await endpoint();
      for (const authorization of [`Bearer ${ann.key}`, `bearer ${ann.key}`, ann.key]) assert.equal((await clientOf(stage.server.url, undefined).call('GET', `/v2/${jobs.id}/health`, undefined, { authorization })).status, 200, authorization);
      for (const path of ['run', 'runsync', `cancel/${NO_SUCH_JOB}`]) {
        for (const authorization of ['Bearer rpa_WRONG', 'rpa_WRONG', `Basic ${ann.key}`, 'Bearer', `Bearer ${'x'.repeat(5000)}`]) {
          assertRefused(await clientOf(stage.server.url, undefined).call('POST', `/v2/${jobs.id}/${path}`, { input: {} }, { authorization }), 401, /^invalid API key$/);
        }
      }
      assertRefused(await clientOf(stage.server.url, undefined).call('GET', `/v2/${jobs.id}/status/${NO_SUCH_JOB}`), 401, /^missing bearer token$/);
    });

    test("another account's endpoint is not there; a key without access to it is refused", async () => {
      const jobs = await endpoint();
      const other = await endpoint();
      const id = await jobs.run();
      const bob = await stage.account(`bob of ${kind}`);
      const through = (key: string): TestEndpoint => endpointOf(clientOf(stage.server.url, key), jobs.id, key);
      for (const [method, path] of [['POST', 'run'], ['POST', 'runsync'], ['GET', `status/${id}`], ['GET', `status-sync/${id}`], ['GET', `stream/${id}`], ['POST', `cancel/${id}`], ['POST', `retry/${id}`], ['POST', 'purge-queue'], ['GET', 'health'], ['GET', 'requests']] as const) {
        const body = method === 'POST' ? { input: {} } : undefined;
        assertRefused(await through(bob.key).call(method, path, body), 404, /^endpoint ".*" not found$/);
        assertRefused(await through(await keyOf({ access: 'RESTRICTED', scopes: { serverless: 'WRITE' }, endpoints: [other.id] })).call(method, path, body), 403, /^access denied/);
        const readOnly = await through(await keyOf({ access: 'READ_ONLY' })).call(method, `${path}${path.startsWith('status-sync') || path.startsWith('stream') ? '?wait=1000' : ''}`, body);
        if (method === 'GET') assert.equal(readOnly.status, 200, `${path}: ${readOnly.text}`);
        else assertRefused(readOnly, 403, /may not write/);
      }
      assertRefused(await through(await keyOf({ access: 'READ_ONLY' })).call('GET', `status/${id}?ttl=10000`), 403, /may not write/);
      assert.equal((await jobs.status(id)).status, 'IN_QUEUE');
      const scoped = through(await keyOf({ access: 'RESTRICTED', scopes: { serverless: 'WRITE' }, endpoints: [jobs.id] }));
      assert.equal((await scoped.call('POST', 'run', { input: {} })).status, 200);
    });

    test('what is not there answers 404 in JSON', async () => {
      const jobs = await endpoint();
      const elsewhere = await (await endpoint()).run();
      for (const id of [NO_SUCH_JOB, elsewhere, 'x', '%00', '%ff', `${elsewhere}x`, elsewhere.toUpperCase(), `sync-${elsewhere}`]) {
        for (const path of ['status', 'status-sync', 'stream']) assertRefused(await jobs.call('GET', `${path}/${id}`), 404, /not found/);
      }
      assertRefused(await jobs.call('GET', 'status'), 404, /^job not found/);
      assertRefused(await clientOf(stage.server.url, ann.key).call('POST', '/v2/nosuchendpoint/run', { input: {} }), 404, /^endpoint "nosuchendpoint" not found$/);
    });

    test('an id tells nothing about another job: the random part counts', async () => {
      const jobs = await endpoint();
      const id = await jobs.run();
      const guess = id.replace(/-([0-9a-f]{12})-u1$/, (_, random: string) => `-${random.startsWith('0') ? '1' : '0'}${random.slice(1)}-u1`);
      assertRefused(await jobs.call('GET', `status/${guess}`), 404, /^job not found/);
      assertRefused(await jobs.call('GET', `status/${guess}?ttl=10000`), 404, /^job not found/);
      assertRefused(await jobs.call('POST', `cancel/${guess}`), 404, /^job not found/);
      assertRefused(await jobs.call('GET', `stream/${guess}`), 404, /not found/);
      assert.equal((await jobs.status(id)).status, 'IN_QUEUE');
    });

    test('a method that an operation does not have gets 405 with the ones it has', async () => {
      const jobs = await endpoint();
      const allowed = { run: 'POST', runsync: 'POST', [`status/${NO_SUCH_JOB}`]: 'GET, POST', [`status-sync/${NO_SUCH_JOB}`]: 'GET, POST', [`stream/${NO_SUCH_JOB}`]: 'GET, POST', [`cancel/${NO_SUCH_JOB}`]: 'POST', [`retry/${NO_SUCH_JOB}`]: 'POST', 'purge-queue': 'POST', health: 'GET', requests: 'GET' };
      for (const [path, methods] of Object.entries(allowed)) {
        for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].filter((name) => !methods.includes(name))) {
          const answer = await jobs.call(method, path);
          assertRefused(answer, 405, new RegExp(`^${method} is not allowed here`));
          assert.equal(answer.headers.get('allow'), methods, `${method} ${path}`);
        }
      }
    });

    test('status and stream answer POST as well', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const id = await jobs.run();
      await worker.take();
      await worker.done(id, { output: 1 });
      assert.equal((await jobs.call('POST', `status/${id}`)).body.output, 1);
      assert.deepEqual((await jobs.call('POST', `stream/${id}`)).body, [{ output: 1 }]);
      worker.close();
    });

    test('a body without a job in it is refused, with the reason', async () => {
      const jobs = await endpoint();
      const refused: [unknown, RegExp][] = [
        ['', /^the body is empty/], ['{', /^the body is not valid JSON$/], ['{"input":NaN}', /^the body is not valid JSON$/], ['[]', /must be a JSON object/], ['"text"', /must be a JSON object/], ['null', /must be a JSON object/],
        [{}, /^the body needs "input"/], [{ input: null }, /^the body needs "input"/], [{ prompt: 'x' }, /^the body needs "input"/],
        [{ input: {}, policy: 'fast' }, /^policy must be an object$/], [{ input: {}, policy: { ttl: 'long' } }, /^policy\.ttl must be a number/], [{ input: {}, policy: { executionTimeout: '5' } }, /^policy\.executionTimeout must be a number/],
        [{ input: {}, policy: { lowPriority: 'yes' } }, /^policy\.lowPriority must be true or false$/], [{ input: {}, webhook: 'not an address' }, /^webhook must be/], [{ input: {}, webhook: 'ftp://example.com' }, /^webhook must be/],
        [{ input: {}, webhook: 'http://127.0.0.1:9/\u0000' }, /^webhook must be/], [{ input: {}, retention: 'ever' }, /^retention must be a number/],
      ];
      for (const [body, text] of refused) for (const path of ['run', 'runsync']) assertRefused(await jobs.call('POST', path, body), 400, text);
      assert.deepEqual((await jobs.health()).jobs, { completed: 0, failed: 0, inProgress: 0, inQueue: 0, retried: 0 });
    });

    test('any JSON but null is an input, also one named like the body', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      for (const input of [{}, [], 0, false, '', 'text', { input: {} }, { input: { input: null } }, { id: 'mine', status: 'COMPLETED' }]) {
        const id = await jobs.run(input);
        assert.deepEqual(await worker.take(), { id, input });
        assert.deepEqual((await jobs.status(id)).input, input);
        await worker.done(id, { output: input });
        assert.deepEqual((await jobs.status(id)).output, input);
      }
      worker.close();
    });

    test('a request of 10 MB is run, of 20 MB run synchronously, and one byte more is refused', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      for (const [path, limit] of [['run', 10 * MEGABYTE], ['runsync?wait=1000', 20 * MEGABYTE]] as const) {
        assert.equal((await jobs.call('POST', path, bodyOf(limit))).status, 200, path);
        const { input } = await worker.take();
        assert.equal((input as string).length, limit - '{"input":""}'.length);
        assertRefused(await jobs.call('POST', path, bodyOf(limit + 1)), 413, new RegExp(`^the body is larger than the ${limit} bytes`));
        // Without an announced length it is counted as it comes.
        const body = new Blob([bodyOf(limit + 1)]).stream();
        const counted = await fetch(`${stage.server.url}/v2/${jobs.id}/${path}`, { method: 'POST', headers: { authorization: jobs.key }, body, duplex: 'half' });
        assert.equal(counted.status, 413);
        await counted.body?.cancel();
      }
      assert.equal((await jobs.health()).jobs.inQueue, 0);
      worker.close();
    });

    test('what stands beside the input reaches the worker as it was written', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const body = {
        input: { a: 1 }, webhook: 'http://127.0.0.1:9/hook', policy: { executionTimeout: 60_000, ttl: 600_000, lowPriority: false, other: [1] },
        s3Config: { accessId: 'id', accessSecret: 'secret', bucketName: 'b', endpointUrl: 'https://s3.example', objectPath: 'p' }, batchId: 'b-1', metadata: { 'ключ': '値 🎉' }, id: 'not mine',
      };
      const made = await jobs.call('POST', 'run', body);
      assert.deepEqual(await worker.take(), { ...body, id: made.body.id });
      worker.close();
    });

    test('numbers and texts keep their digits and characters, both ways', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const value = '{"float":1.0,"tiny":1e-7,"large":1152921504606846976,"larger":123456789012345678901234567890,"negative":-0.0,"text":"\\ud83c\\udf89 \\u0000 ü \\/","deep":[[[[{"a":[1.50]}]]]]}';
      const made = await jobs.call('POST', 'run', `{"input": ${value} , "policy":{"ttl":6e5}}`);
      const { text } = await worker.poll();
      assert.ok(text.includes(value), text);
      await worker.done(made.body.id, `{"output":${value}}`);
      assert.ok((await jobs.call('GET', `status/${made.body.id}`)).text.includes(`"output":${value}`));
      assert.ok((await jobs.call('GET', 'requests')).text.includes(`"input":${value},"output":${value}`));
      assert.equal((await jobs.call('GET', `stream/${made.body.id}`)).text, `[{"output":${value}}]`);
      const [sync] = await Promise.all([jobs.call('POST', 'runsync', `{"input":${value}}`), worker.take().then(({ id }) => worker.done(id, `{"output":${value}}`))]);
      assert.ok(sync.text.includes(`"output":${value}`));
      worker.close();
    });

    test('an Idempotency-Key makes one job of many requests', async () => {
      const jobs = await endpoint();
      const submit = (key: string, body: unknown, path = 'run'): Promise<Answer<JobView>> => jobs.call('POST', path, body, { 'idempotency-key': key });
      const first = await submit('a', { input: 1 });
      assert.deepEqual((await submit('a', { input: 1 })).body, first.body);
      assertRefused(await submit('a', { input: 2 }), 409, /^this Idempotency-Key was used with another body/);
      assert.notEqual((await submit('b', { input: 1 })).body.id, first.body.id);
      const together = await Promise.all(Array.from({ length: 20 }, () => submit('c', { input: 3 })));
      assert.equal(new Set(together.map(({ body }) => body.id)).size, 1);
      const mixed = await Promise.all(Array.from({ length: 10 }, (_, n) => submit('d', { input: n % 2 })));
      assert.equal(new Set(mixed.filter(({ status }) => status === 200).map(({ body }) => body.id)).size, 1);
      assert.equal(mixed.filter(({ status }) => status === 409).length, 5);
      assert.equal((await jobs.health()).jobs.inQueue, 4);
      assert.notEqual((await (await endpoint()).call('POST', 'run', { input: 2 }, { 'idempotency-key': 'a' })).body.id, first.body.id);
      assert.equal((await submit('x'.repeat(255), { input: 2 })).status, 200);
      assertRefused(await submit('x'.repeat(256), { input: 2 }), 400, /^an Idempotency-Key has at most 255 characters$/);
      // Later, and in whatever state the job is by then, the same request finds the same job.
      const worker = jobs.worker();
      await worker.pollBatch(10);
      await worker.done(first.body.id, { output: 'once' });
      assert.deepEqual((await submit('a', { input: 1 })).body, { id: first.body.id, status: 'COMPLETED' });
      const { took, result } = await timed(() => submit('a', { input: 1 }, 'runsync?wait=60000'));
      assert.deepEqual([result.body.id, result.body.output], [first.body.id, 'once']);
      assert.ok(took < PROMPT_MS, `answered after ${took} ms`);
      assert.equal((await submit('a', { input: 1 }, 'runsync')).body.output, 'once');
      worker.close();
    });

    test('jobs go out in the order in which they came, those of low priority last', async () => {
      const jobs = await endpoint();
      const low = [await jobs.run({}, { policy: { lowPriority: true } }), await jobs.run({}, { policy: { lowPriority: true } })];
      const normal = [];
      for (let n = 0; n < 8; n += 1) normal.push(await jobs.run({ n }));
      const worker = jobs.worker();
      const order = [await worker.take(), ...(await worker.pollBatch(4, { busy: true })).body, ...(await worker.pollBatch(20, { busy: true })).body].map(({ id }) => id);
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
      const waiting = [await jobs.run(), await jobs.run(), await jobs.run({}, { policy: { lowPriority: true } })];
      assert.deepEqual(await Promise.all(waiting.map(reason)), ['next in line: 1 worker is busy', 'held behind 1 job', 'held behind 2 jobs']);
      await jobs.worker().ping();
      assert.equal(await reason(waiting[0] ?? ''), 'next in line: 2 workers are busy');
      worker.close();
    });

    test('a deleted endpoint takes its jobs along', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const running = await jobs.run();
      await worker.take();
      const caller = jobs.runSync({}, 60_000);
      const stopping = worker.stops();
      await eventually(async () => assert.equal((await jobs.health()).jobs.inQueue, 1));
      assert.equal((await ann.call('DELETE', `/v2/serverless/${jobs.id}`)).status, 204);
      assertRefused(await caller, 404, /not found/);
      assert.deepEqual((await stopping).body, { jobsToStop: [running] });
      assertRefused(await jobs.call('GET', `status/${running}`), 404, /^endpoint/);
      worker.close();
    });
  });
}
