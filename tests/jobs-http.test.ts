import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { createApiClient } from '../packages/testing/src/api-client.ts';
import { DATABASES } from '../packages/testing/src/test-database.ts';
import {
  assertJobApiError,
  jobBodyOfSize,
  queueEndpointClient,
  createQueueEndpoint,
  NO_SUCH_JOB,
} from '../packages/testing/src/queue-endpoint-client.ts';
import type { QueueEndpointClient } from '../packages/testing/src/queue-endpoint-client.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';

const MEGABYTE = 1024 * 1024;

for (const kind of DATABASES) {
  describe(`the job API over HTTP, on ${kind}`, { concurrency: true }, () => {
    const fixture = serverFixture(kind, { BERTH_RATE_LIMITS: 'off' });
    let ann: TestAccount;
    before(async () => {
      ann = await fixture.createAccount('ann');
    });
    const endpoint = (settings: Record<string, unknown> = {}): Promise<QueueEndpointClient> =>
      createQueueEndpoint(fixture.server.url, ann.key, settings);
    const keyOf = async (settings: Record<string, unknown>): Promise<string> =>
      (await ann.call<{ key: string }>('POST', '/v2/account/api-keys', { name: 'other', ...settings })).body
        .key;

    test('the key comes with or without Bearer; every other one is refused in the same words', async () => {
      const jobs = await endpoint();
      for (const authorization of [`Bearer ${ann.key}`, `bearer ${ann.key}`, ann.key])
        assert.equal(
          (
            await createApiClient(fixture.server.url, undefined).call(
              'GET',
              `/v2/${jobs.id}/health`,
              undefined,
              {
                authorization,
              },
            )
          ).status,
          200,
          authorization,
        );
      for (const path of ['run', 'runsync', `cancel/${NO_SUCH_JOB}`]) {
        for (const authorization of [
          'Bearer rpa_WRONG',
          'rpa_WRONG',
          `Basic ${ann.key}`,
          'Bearer',
          `Bearer ${'x'.repeat(5000)}`,
        ]) {
          assertJobApiError(
            await createApiClient(fixture.server.url, undefined).call(
              'POST',
              `/v2/${jobs.id}/${path}`,
              { input: {} },
              { authorization },
            ),
            401,
            /^invalid API key$/,
          );
        }
      }
      assertJobApiError(
        await createApiClient(fixture.server.url, undefined).call(
          'GET',
          `/v2/${jobs.id}/status/${NO_SUCH_JOB}`,
        ),
        401,
        /^missing bearer token$/,
      );
    });

    test("another account's endpoint is not there; a key without access to it is refused", async () => {
      const jobs = await endpoint();
      const other = await endpoint();
      const id = await jobs.run();
      const bob = await fixture.createAccount(`bob of ${kind}`);
      const through = (key: string): QueueEndpointClient =>
        queueEndpointClient(createApiClient(fixture.server.url, key), jobs.id, key);
      for (const [method, path] of [
        ['POST', 'run'],
        ['POST', 'runsync'],
        ['GET', `status/${id}`],
        ['GET', `status-sync/${id}`],
        ['GET', `stream/${id}`],
        ['POST', `cancel/${id}`],
        ['POST', `retry/${id}`],
        ['POST', 'purge-queue'],
        ['GET', 'health'],
        ['GET', 'requests'],
      ] as const) {
        const body = method === 'POST' ? { input: {} } : undefined;
        assertJobApiError(await through(bob.key).call(method, path, body), 404, /^endpoint ".*" not found$/);
        assertJobApiError(
          await through(
            await keyOf({ access: 'RESTRICTED', scopes: { serverless: 'WRITE' }, endpoints: [other.id] }),
          ).call(method, path, body),
          403,
          /^access denied/,
        );
        const readOnly = await through(await keyOf({ access: 'READ_ONLY' })).call(
          method,
          `${path}${path.startsWith('status-sync') || path.startsWith('stream') ? '?wait=1000' : ''}`,
          body,
        );
        if (method === 'GET') assert.equal(readOnly.status, 200, `${path}: ${readOnly.text}`);
        else assertJobApiError(readOnly, 403, /may not write/);
      }
      assertJobApiError(
        await through(await keyOf({ access: 'READ_ONLY' })).call('GET', `status/${id}?ttl=10000`),
        403,
        /may not write/,
      );
      assert.equal((await jobs.status(id)).status, 'IN_QUEUE');
      const scoped = through(
        await keyOf({ access: 'RESTRICTED', scopes: { serverless: 'WRITE' }, endpoints: [jobs.id] }),
      );
      assert.equal((await scoped.call('POST', 'run', { input: {} })).status, 200);
    });

    test('an unknown path answers 404 in JSON', async () => {
      const jobs = await endpoint();
      const elsewhere = await (await endpoint()).run();
      for (const id of [
        NO_SUCH_JOB,
        elsewhere,
        'x',
        '%00',
        '%ff',
        `${elsewhere}x`,
        elsewhere.toUpperCase(),
        `sync-${elsewhere}`,
      ]) {
        for (const path of ['status', 'status-sync', 'stream'])
          assertJobApiError(await jobs.call('GET', `${path}/${id}`), 404, /not found/);
      }
      assertJobApiError(await jobs.call('GET', 'status'), 404, /^job not found/);
      assertJobApiError(
        await createApiClient(fixture.server.url, ann.key).call('POST', '/v2/nosuchendpoint/run', {
          input: {},
        }),
        404,
        /^endpoint "nosuchendpoint" not found$/,
      );
    });

    test('an id reveals nothing about another job: the random part counts', async () => {
      const jobs = await endpoint();
      const id = await jobs.run();
      const guess = id.replace(
        /-([0-9a-f]{12})-u1$/,
        (_, random: string) => `-${random.startsWith('0') ? '1' : '0'}${random.slice(1)}-u1`,
      );
      assertJobApiError(await jobs.call('GET', `status/${guess}`), 404, /^job not found/);
      assertJobApiError(await jobs.call('GET', `status/${guess}?ttl=10000`), 404, /^job not found/);
      assertJobApiError(await jobs.call('POST', `cancel/${guess}`), 404, /^job not found/);
      assertJobApiError(await jobs.call('GET', `stream/${guess}`), 404, /not found/);
      assert.equal((await jobs.status(id)).status, 'IN_QUEUE');
    });

    test('a method that an operation does not have gets 405 with the ones it has', async () => {
      const jobs = await endpoint();
      const allowed = {
        run: 'POST',
        runsync: 'POST',
        [`status/${NO_SUCH_JOB}`]: 'GET, POST',
        [`status-sync/${NO_SUCH_JOB}`]: 'GET, POST',
        [`stream/${NO_SUCH_JOB}`]: 'GET, POST',
        [`cancel/${NO_SUCH_JOB}`]: 'POST',
        [`retry/${NO_SUCH_JOB}`]: 'POST',
        'purge-queue': 'POST',
        health: 'GET',
        requests: 'GET',
      };
      for (const [path, methods] of Object.entries(allowed)) {
        for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].filter(
          (name) => !methods.includes(name),
        )) {
          const answer = await jobs.call(method, path);
          assertJobApiError(answer, 405, new RegExp(`^${method} is not allowed here`));
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
        ['', /^the body is empty/],
        ['{', /^the body is not valid JSON$/],
        ['{"input":NaN}', /^the body is not valid JSON$/],
        ['[]', /must be a JSON object/],
        ['"text"', /must be a JSON object/],
        ['null', /must be a JSON object/],
        [{}, /^the body needs "input"/],
        [{ input: null }, /^the body needs "input"/],
        [{ prompt: 'x' }, /^the body needs "input"/],
        [{ input: {}, policy: 'fast' }, /^policy must be an object$/],
        [{ input: {}, policy: { ttl: 'long' } }, /^policy\.ttl must be a number/],
        [{ input: {}, policy: { executionTimeout: '5' } }, /^policy\.executionTimeout must be a number/],
        [{ input: {}, policy: { lowPriority: 'yes' } }, /^policy\.lowPriority must be true or false$/],
        [{ input: {}, webhook: 'not an address' }, /^webhook must be/],
        [{ input: {}, webhook: 'ftp://example.com' }, /^webhook must be/],
        [{ input: {}, webhook: 'http://127.0.0.1:9/\u0000' }, /^webhook must be/],
        [{ input: {}, retention: 'ever' }, /^retention must be a number/],
      ];
      for (const [body, text] of refused)
        for (const path of ['run', 'runsync'])
          assertJobApiError(await jobs.call('POST', path, body), 400, text);
      assert.deepEqual((await jobs.health()).jobs, {
        completed: 0,
        failed: 0,
        inProgress: 0,
        inQueue: 0,
        retried: 0,
      });
    });

    test('any JSON but null is an input, also one named like the body', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      for (const input of [
        {},
        [],
        0,
        false,
        '',
        'text',
        { input: {} },
        { input: { input: null } },
        { id: 'mine', status: 'COMPLETED' },
      ]) {
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
      for (const [path, limit] of [
        ['run', 10 * MEGABYTE],
        ['runsync?wait=1000', 20 * MEGABYTE],
      ] as const) {
        assert.equal((await jobs.call('POST', path, jobBodyOfSize(limit))).status, 200, path);
        const { input } = await worker.take();
        assert.equal((input as string).length, limit - '{"input":""}'.length);
        assertJobApiError(
          await jobs.call('POST', path, jobBodyOfSize(limit + 1)),
          413,
          new RegExp(`^the body is larger than the ${limit} bytes`),
        );
        // Without an announced length it is counted as it comes.
        const body = new Blob([jobBodyOfSize(limit + 1)]).stream();
        const counted = await fetch(`${fixture.server.url}/v2/${jobs.id}/${path}`, {
          method: 'POST',
          headers: { authorization: jobs.key },
          body,
          duplex: 'half',
        });
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
        input: { a: 1 },
        webhook: 'http://127.0.0.1:9/hook',
        policy: { executionTimeout: 60_000, ttl: 600_000, lowPriority: false, other: [1] },
        s3Config: {
          accessId: 'id',
          accessSecret: 'secret',
          bucketName: 'b',
          endpointUrl: 'https://s3.example',
          objectPath: 'p',
        },
        batchId: 'b-1',
        metadata: { ключ: '値 🎉' },
        id: 'not mine',
      };
      const made = await jobs.call('POST', 'run', body);
      assert.deepEqual(await worker.take(), { ...body, id: made.body.id });
      worker.close();
    });

    test('a body that is not UTF-8 is refused, however it comes', async () => {
      const jobs = await endpoint();
      const bytes = Buffer.concat([Buffer.from('{"input":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}')]);
      for (const path of ['run', 'runsync']) {
        for (const large of [Buffer.alloc(0), Buffer.alloc(300_000, ' ')]) {
          const response = await fetch(`${fixture.server.url}/v2/${jobs.id}/${path}`, {
            method: 'POST',
            headers: { authorization: jobs.key, 'content-type': 'application/json' },
            body: Buffer.concat([bytes, large]),
          });
          assert.deepEqual(
            [response.status, await response.json()],
            [400, { error: 'the body is not valid JSON: it is not UTF-8' }],
          );
        }
      }
      assert.equal((await jobs.status(await jobs.run('\ufffd'))).input, '\ufffd');
    });

    test('numbers and texts keep their digits and characters, both ways', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const value =
        '{"float":1.0,"tiny":1e-7,"large":1152921504606846976,"larger":123456789012345678901234567890,"negative":-0.0,"text":"\\ud83c\\udf89 ' +
        '\\u0000 ü \\/","deep":[[[[{"a":[1.50]}]]]]}';
      const made = await jobs.call('POST', 'run', `{"input": ${value} , "policy":{"ttl":6e5}}`);
      const { text } = await worker.poll();
      assert.ok(text.includes(value), text);
      await worker.done(made.body.id, `{"output":${value}}`);
      assert.ok((await jobs.call('GET', `status/${made.body.id}`)).text.includes(`"output":${value}`));
      assert.ok((await jobs.call('GET', 'requests')).text.includes(`"input":${value},"output":${value}`));
      assert.equal((await jobs.call('GET', `stream/${made.body.id}`)).text, `[{"output":${value}}]`);
      const [sync] = await Promise.all([
        jobs.call('POST', 'runsync', `{"input":${value}}`),
        worker.take().then(({ id }) => worker.done(id, `{"output":${value}}`)),
      ]);
      assert.ok(sync.text.includes(`"output":${value}`));
      worker.close();
    });
  });
}
