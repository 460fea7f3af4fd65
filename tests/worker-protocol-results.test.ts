import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { DATABASES } from '../packages/testing/src/test-database.ts';
import {
  createQueueEndpoint,
  NO_SUCH_JOB,
  submitAndTake,
} from '../packages/testing/src/queue-endpoint-client.ts';
import type { QueueEndpointClient } from '../packages/testing/src/queue-endpoint-client.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';

const MEGABYTE = 1024 * 1024;

for (const kind of DATABASES) {
  describe(`the results of a worker, on ${kind}`, { concurrency: true }, () => {
    const fixture = serverFixture(kind, { BERTH_RATE_LIMITS: 'off' });
    let ann: TestAccount;
    before(async () => {
      ann = await fixture.createAccount('ann');
    });
    const endpoint = (settings: Record<string, unknown> = {}): Promise<QueueEndpointClient> =>
      createQueueEndpoint(fixture.server.url, ann.key, settings);

    test('a post under an id that is none changes no job', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const id = await jobs.run();
      await worker.take();
      const other = id.replace(/.(?=-u1$)/, (digit) => (digit === '0' ? '1' : '0'));
      for (const reply of [
        await worker.chunk(other, { output: 1 }),
        await worker.done(other, { status: 'IN_PROGRESS', output: 2 }),
        await worker.done(other, { output: 3 }),
      ])
        assert.equal(reply.status, 200);
      const { status, output } = await jobs.status(id);
      assert.deepEqual([status, output], ['IN_PROGRESS', undefined]);
      await worker.done(id, { output: 4 });
      assert.equal((await jobs.status(id)).output, 4);
      assert.deepEqual((await jobs.call('GET', `stream/${id}`)).body, [{ output: 4 }]);
      worker.close();
    });

    test('a body is JSON whatever its content type says, and text keeps its characters', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const output = { greeting: 'Grüße, 世界 🎉', escaped: 'a=b&c=%41+"\\', control: '\u0000\u001f\u2028' };
      const id = await submitAndTake(jobs, worker);
      await worker.chunk(id, { output });
      await worker.done(id, { output });
      assert.deepEqual((await jobs.status(id)).output, output);
      assert.deepEqual((await jobs.call('GET', `stream/${id}`)).body, [{ output }]);
      worker.close();
    });

    test('NaN and Infinity are taken in and come out as null, outside of texts only', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const id = await submitAndTake(jobs, worker);
      const value =
        '{"nan": NaN, "list": [Infinity, -Infinity, 1.0], "text": "NaN, -Infinity \\" NaN", "NaN": 1}';
      const clean = { nan: null, list: [null, null, 1], text: 'NaN, -Infinity " NaN', NaN: 1 };
      await worker.send('POST', `job-done/${worker.workerId}/${id}?isStream=false`, {
        body: `{"status": "IN_PROGRESS", "output": ${value}}`,
      });
      assert.deepEqual((await jobs.status(id)).output, clean);
      await worker.chunk(id, `{"output": ${value}}`);
      await worker.done(id, `{"output": ${value}}`);
      const { text, body } = await jobs.call('GET', `status/${id}`);
      assert.deepEqual(body.output, clean);
      assert.ok(text.includes('[null, null, 1.0]'));
      assert.deepEqual((await jobs.call('GET', `stream/${id}`)).body, [{ output: clean }]);
      const failed = await submitAndTake(jobs, worker);
      await worker.done(failed, '{"error": {"code": NaN}}');
      assert.deepEqual((await jobs.status(failed)).error, { code: null });
      worker.close();
    });

    test('an empty result is a result; an error of any kind is a failure and may have an output too', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const cases: [string, string, unknown, unknown][] = [
        ['{}', 'COMPLETED', undefined, undefined],
        ['{"output":null}', 'COMPLETED', null, undefined],
        ['{"output":false}', 'COMPLETED', false, undefined],
        ['{"output":[]}', 'COMPLETED', [], undefined],
        ['{"output":1,"error":null}', 'COMPLETED', 1, undefined],
        ['{"error":"text"}', 'FAILED', undefined, 'text'],
        ['{"error":{"code":5},"output":{"extra":1}}', 'FAILED', { extra: 1 }, { code: 5 }],
        ['{"error":["a"]}', 'FAILED', undefined, ['a']],
        ['{"error":true}', 'FAILED', undefined, true],
        [
          JSON.stringify({ error: '{"error_type": "<class \'ValueError\'>", "error_message": "no"}' }),
          'FAILED',
          undefined,
          '{"error_type": "<class \'ValueError\'>", "error_message": "no"}',
        ],
        ['{"output":{"status":"IN_PROGRESS"}}', 'COMPLETED', { status: 'IN_PROGRESS' }, undefined],
      ];
      for (const [body, status, output, error] of cases) {
        const id = await submitAndTake(jobs, worker);
        assert.equal((await worker.done(id, body)).status, 200);
        const job = await jobs.status(id);
        assert.deepEqual([job.status, job.output, job.error], [status, output, error], body);
      }
      worker.close();
    });

    test('repeated, late, foreign and senseless posts get 200 and change nothing', async () => {
      const jobs = await endpoint();
      const [worker, other] = [jobs.worker(), jobs.worker()];
      const id = await submitAndTake(jobs, worker);
      for (const stranger of [other, jobs.worker()]) {
        for (const reply of [
          await stranger.done(id, { output: 'stolen' }),
          await stranger.progress(id, 'stolen'),
          await stranger.chunk(id, { output: 'stolen' }),
        ])
          assert.equal(reply.status, 200);
      }
      const { status, output } = await jobs.status(id);
      assert.deepEqual({ status, output }, { status: 'IN_PROGRESS', output: undefined });
      await worker.done(id, { output: 'first' });
      for (const body of [{ output: 'second' }, { error: 'no' }])
        assert.equal((await worker.done(id, body)).status, 200);
      assert.equal((await worker.progress(id, 'late')).status, 200);
      assert.equal((await worker.chunk(id, { output: 'late' })).status, 200);
      assert.equal((await jobs.status(id)).output, 'first');
      assert.deepEqual((await jobs.call('GET', `stream/${id}`)).body, [{ output: 'first' }]);
      for (const unknown of [NO_SUCH_JOB, 'nonsense', '%E2%82%AC'])
        for (const reply of [
          await worker.done(unknown, { output: 1 }),
          await worker.chunk(unknown, { output: 1 }),
        ])
          assert.equal(reply.status, 200);
      assert.deepEqual((await jobs.health()).jobs, {
        completed: 1,
        failed: 0,
        inProgress: 0,
        inQueue: 0,
        retried: 0,
      });
      for (const body of ['', 'output=1', '[]', '{"output":'])
        assert.equal((await worker.done(NO_SUCH_JOB, body)).status, 400, body);
      for (const one of [worker, other]) one.close();
    });

    test('a result of 25 MB is kept', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const id = await submitAndTake(jobs, worker);
      const output = `NaN ${'ö'.repeat((25 * MEGABYTE) / 2)} NaN`;
      assert.equal((await worker.done(id, { output })).status, 200);
      assert.ok((await jobs.status(id)).output === output, 'it came back whole');
      worker.close();
    });

    test('a post that is cut off is not an internal error, and the job goes on', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const id = await submitAndTake(jobs, worker);
      const leaving = new AbortController();
      const sent = Promise.withResolvers<void>();
      const body = new ReadableStream({
        start: (controller) => controller.enqueue(new TextEncoder().encode('{"output":')),
        pull: () => {
          sent.resolve();
          return new Promise(() => undefined);
        },
      });
      const posting = fetch(
        `${fixture.server.url}/v2/${jobs.id}/job-done/${worker.workerId}/${id}?isStream=false`,
        { method: 'POST', headers: { authorization: ann.key }, duplex: 'half', signal: leaving.signal, body },
      );
      await sent.promise;
      await jobs.health();
      leaving.abort();
      await assert.rejects(posting);
      assert.equal((await jobs.status(id)).status, 'IN_PROGRESS');
      await worker.done(id, { output: 1 });
      assert.equal((await jobs.status(id)).status, 'COMPLETED');
      worker.close();
    });
  });
}

describe('a result that is too large', () => {
  const fixture = serverFixture('sqlite', { BERTH_RATE_LIMITS: 'off' });

  test('a result over 64 MB ends its job with the reason', async () => {
    const jobs = await createQueueEndpoint(fixture.server.url, fixture.server.key);
    const worker = jobs.worker();
    const id = await jobs.run();
    await worker.take();
    assert.equal((await worker.done(id, { output: 'x'.repeat(64 * MEGABYTE) })).status, 413);
    assert.deepEqual(
      [(await jobs.status(id)).status, (await jobs.status(id)).error],
      ['FAILED', 'the result is larger than 67108864 bytes; store it elsewhere and return its address'],
    );
    worker.close();
  });
});
