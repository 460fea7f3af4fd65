import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { createApiClient } from '../packages/testing/src/api-client.ts';
import type { ApiResponse } from '../packages/testing/src/api-client.ts';
import { DATABASES } from '../packages/testing/src/test-database.ts';
import {
  assertJobApiError,
  jobBodyOfSize,
  queueEndpointClient,
  createQueueEndpoint,
  NO_SUCH_JOB,
} from '../packages/testing/src/queue-endpoint-client.ts';
import type { JobView, QueueEndpointClient } from '../packages/testing/src/queue-endpoint-client.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';
import type { PublicProtocolWorker, WorkerResponse } from '../packages/testing/src/protocol-workers.ts';
import { waitUntilPasses } from '../packages/testing/src/wait-for.ts';

const MEGABYTE = 1024 * 1024;
const NOTHING = { completed: 0, failed: 0, inProgress: 0, inQueue: 0, retried: 0 };

for (const kind of DATABASES) {
  describe(`bad input to the job API, on ${kind}`, { concurrency: true }, () => {
    const fixture = serverFixture(kind, { BERTH_RATE_LIMITS: 'off' });
    let ann: TestAccount;
    before(async () => {
      ann = await fixture.createAccount('ann');
    });
    const endpoint = (settings: Record<string, unknown> = {}): Promise<QueueEndpointClient> =>
      createQueueEndpoint(fixture.server.url, ann.key, settings);
    const taken = async (jobs: QueueEndpointClient, worker: PublicProtocolWorker): Promise<string> => {
      const id = await jobs.run({ n: 1 });
      assert.equal((await worker.take()).id, id);
      return id;
    };
    /** The job as it stands, without what changes with the clock. */
    const standing = async (jobs: QueueEndpointClient, id: string): Promise<[string, unknown, unknown]> => {
      const { status, output, error } = await jobs.status(id);
      return [status, output, error];
    };

    test('no input, null input and what is no JSON: 400, and no job', async () => {
      const jobs = await endpoint();
      for (const path of ['run', 'runsync']) {
        for (const body of [{}, { prompt: 'x' }, { input: null }])
          assertJobApiError(
            await jobs.call('POST', path, body),
            400,
            /^the body needs "input": the value that the handler receives$/,
          );
        for (const body of ['{"input":', 'input=1', '{"input":{}}}', "{'input':1}"])
          assertJobApiError(await jobs.call('POST', path, body), 400, /^the body is not valid JSON$/);
        assertJobApiError(await jobs.call('POST', path, ''), 400, /^the body is empty/);
        for (const body of ['[]', '1', 'null'])
          assertJobApiError(await jobs.call('POST', path, body), 400, /^the body must be a JSON object/);
      }
      assert.deepEqual((await jobs.health()).jobs, NOTHING);
    });

    test('one byte more than 10 MB to run, or than 20 MB to runsync: 413, and no job', async () => {
      const jobs = await endpoint();
      for (const [path, limit] of [
        ['run', 10 * MEGABYTE],
        ['runsync', 20 * MEGABYTE],
      ] as const)
        assertJobApiError(
          await jobs.call('POST', path, jobBodyOfSize(limit + 1)),
          413,
          new RegExp(`^the body is larger than the ${limit} bytes`),
        );
      assert.deepEqual((await jobs.health()).jobs, NOTHING);
    });

    test('an endpoint that does not exist or belongs to another account: 404', async () => {
      const jobs = await endpoint();
      const bob = await fixture.createAccount(`bob of ${kind}`);
      for (const [key, id] of [
        [ann.key, 'nosuchendpoint'],
        [bob.key, jobs.id],
      ] as const) {
        const there = queueEndpointClient(createApiClient(fixture.server.url, key), id, key);
        for (const [method, path] of [
          ['POST', 'run'],
          ['POST', 'runsync'],
          ['GET', `status/${NO_SUCH_JOB}`],
          ['POST', 'purge-queue'],
          ['GET', 'health'],
          ['GET', 'requests'],
          ['GET', 'webhooks'],
          ['GET', `logs/${NO_SUCH_JOB}`],
        ] as const) {
          assertJobApiError(
            await there.call(method, path, method === 'POST' ? { input: {} } : undefined),
            404,
            new RegExp(`^endpoint "${id}" not found$`),
          );
        }
      }
    });

    test('a job that is unknown or has expired: 404, whatever is asked of it', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const { body } = await jobs.call('POST', 'run', { input: {}, retention: 0 });
      await worker.take();
      await worker.done(body.id, { error: 'it failed, and could be retried if it were still there' });
      await waitUntilPasses(async () =>
        assertJobApiError(await jobs.call('GET', `status/${body.id}`), 404, /^job not found/),
      );
      for (const id of [NO_SUCH_JOB, body.id, 'nonsense', `${NO_SUCH_JOB}%2F..`]) {
        for (const [method, path] of [
          ['GET', 'status'],
          ['GET', 'status-sync'],
          ['GET', 'stream'],
          ['POST', 'cancel'],
          ['POST', 'retry'],
          ['GET', 'logs'],
        ] as const) {
          assertJobApiError(await jobs.call(method, `${path}/${id}`), 404, /not found/);
        }
      }
      assert.equal((await jobs.health()).jobs.inQueue, 0);
      worker.close();
    });

    test('a retry of a job that runs or has completed: 400, and the job stays as it is', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const [completed, running] = [await taken(jobs, worker), await taken(jobs, worker)];
      await worker.done(completed, { output: 'kept' });
      assertJobApiError(
        await jobs.call('POST', `retry/${running}`),
        400,
        /^only a FAILED or TIMED_OUT job can be retried; this one is IN_PROGRESS$/,
      );
      assertJobApiError(
        await jobs.call('POST', `retry/${completed}`),
        400,
        /^only a FAILED or TIMED_OUT job can be retried; this one is COMPLETED$/,
      );
      await worker.done(running, { output: 'kept too' });
      assert.deepEqual(
        [await standing(jobs, completed), await standing(jobs, running)],
        [
          ['COMPLETED', 'kept', undefined],
          ['COMPLETED', 'kept too', undefined],
        ],
      );
      worker.close();
    });

    test('a purge of an empty queue: 200 and nothing removed, also beside a job that runs', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const purged = async (): Promise<unknown> => {
        const { status, body } = await jobs.call<unknown>('POST', 'purge-queue');
        return { status, body };
      };
      assert.deepEqual(await purged(), { status: 200, body: { removed: 0, status: 'completed' } });
      const id = await taken(jobs, worker);
      assert.deepEqual(await purged(), { status: 200, body: { removed: 0, status: 'completed' } });
      assert.equal((await jobs.status(id)).status, 'IN_PROGRESS');
      worker.close();
    });

    test('times and numbers that are none: 400, and no job', async () => {
      const jobs = await endpoint();
      const id = await jobs.run();
      assertJobApiError(
        await jobs.call('POST', 'runsync?wait=abc', { input: {} }),
        400,
        /^wait must be a number of milliseconds, got "abc"$/,
      );
      for (const path of [`status-sync/${id}?wait=abc`, `stream/${id}?wait=soon`])
        assertJobApiError(await jobs.call('GET', path), 400, /^wait must be a number of milliseconds/);
      assertJobApiError(
        await jobs.call('GET', `status/${id}?ttl=long`),
        400,
        /^ttl must be a number of milliseconds, got "long"$/,
      );
      for (const name of ['limit', 'offset'])
        assertJobApiError(
          await jobs.call('GET', `requests?${name}=many`),
          400,
          new RegExp(`^${name} must be a whole number$`),
        );
      assertJobApiError(
        await jobs.call('GET', 'requests?status=DONE'),
        400,
        /^status must be one of IN_QUEUE, /,
      );
      assertJobApiError(
        await jobs.call('POST', 'run', { input: {} }, { 'idempotency-key': 'x'.repeat(256) }),
        400,
        /^an Idempotency-Key has at most 255 characters$/,
      );
      assert.deepEqual((await jobs.health()).jobs, { ...NOTHING, inQueue: 1 });
    });

    test('numbers outside their bounds, however far: moved inside', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const ids = [await jobs.run({ n: 1 }), await jobs.run({ n: 2 })];
      const huge = '9'.repeat(20);
      assert.equal((await jobs.call('GET', `status/${ids[0]}?ttl=${huge}`)).body.status, 'IN_QUEUE');
      for (const [query, count] of [
        ['limit=99999999999', 2],
        ['limit=0', 1],
        ['limit=-5', 1],
        [`offset=-${huge}`, 2],
        [`offset=${huge}`, 0],
      ] as const) {
        const { status, body, text } = await jobs.call<{ requests: unknown[] }>('GET', `requests?${query}`);
        assert.deepEqual([status, body.requests?.length], [200, count], `${query}: ${text}`);
      }
      for (const limit of ['0', huge])
        assert.deepEqual((await jobs.call<unknown>('GET', `webhooks?limit=${limit}`)).body, {
          deliveries: [],
        });
      await worker.pollBatch(2);
      for (const id of ids) await worker.done(id, { output: 1 });
      const waiting = jobs.call(
        'POST',
        `runsync?wait=${huge}`,
        '{"input":1,"policy":{"ttl":1e400,"executionTimeout":-1e400,"lowPriority":null},"retention":1e400}',
      );
      await worker.done((await worker.take()).id, { output: 2 });
      const { status, body, text } = await waiting;
      assert.deepEqual([status, body.output], [200, 2], text);
      for (const path of ['status-sync', 'stream'])
        assert.equal((await jobs.call('GET', `${path}/${body.id}?wait=${huge}`)).status, 200);
      worker.close();
    });

    test('a webhook of more than 8192 characters: 400, and no job', async () => {
      const jobs = await endpoint();
      for (const path of ['run', 'runsync'])
        assertJobApiError(
          await jobs.call('POST', path, { input: 1, webhook: `http://127.0.0.1:1/${'a'.repeat(MEGABYTE)}` }),
          400,
          /^webhook has at most 8192 characters$/,
        );
      assert.deepEqual((await jobs.health()).jobs, NOTHING);
      assert.equal(
        (await jobs.call('POST', 'run', { input: 1, webhook: 'http://127.0.0.1:1/'.padEnd(8192, 'a') }))
          .status,
        200,
      );
    });

    test('a NUL or another control character in an address: as if it were any id that nobody has', async () => {
      const jobs = await endpoint();
      const nobody = createApiClient(fixture.server.url, undefined);
      // At once: refusals of a worker take their time.
      await Promise.all(
        ['%00', 'a%00b', '%0A', '%7F'].map(async (id) => {
          const there = queueEndpointClient(createApiClient(fixture.server.url, ann.key), id, ann.key);
          await Promise.all(
            (
              [
                ['GET', 'health'],
                ['POST', 'run'],
                ['GET', 'job-take/w1'],
                ['POST', 'job-done/w1/j1'],
              ] as const
            ).map(async ([method, path]) => {
              const body = method === 'POST' ? { input: {} } : undefined;
              assertJobApiError(await there.call(method, path, body), 404, /^endpoint ".*" not found$/);
              assertJobApiError(await nobody.call(method, `/v2/${id}/${path}`, body), 401, /./);
            }),
          );
          assert.equal((await there.call('GET', 'openai/v1/models')).status, 404);
          assert.equal((await nobody.call('GET', `/v2/${id}/openai/v1/models`)).status, 401);
        }),
      );
      for (const jobId of ['%00', 'x%00', 'nonsense', ''])
        assert.deepEqual((await jobs.call<unknown>('GET', `webhooks?jobId=${jobId}`)).body, {
          deliveries: [],
        });
      assertJobApiError(await jobs.call('POST', 'webhooks/%00/redeliver'), 404, /not found$/);
    });

    test('an address that goes on after its end: 404, and nothing happens; a slash at the end is none', async () => {
      const jobs = await endpoint();
      const id = await jobs.run();
      const addresses = [
        ['POST', 'purge-queue'],
        ['POST', 'run'],
        ['POST', 'runsync'],
        ['GET', 'health'],
        ['GET', 'metrics'],
        ['GET', 'requests'],
        ['GET', 'webhooks'],
        ['POST', 'webhooks/d/redeliver'],
        ...['status', 'status-sync', 'stream', 'logs'].map((name) => ['GET', `${name}/${id}`] as const),
        ['POST', `cancel/${id}`],
        ['POST', `retry/${id}`],
      ] as const;
      for (const [method, path] of addresses) {
        const body = method === 'POST' ? { input: {} } : undefined;
        for (const more of ['x', 'x/', '/', 'x/y', '%2F'])
          assertJobApiError(
            await jobs.call(method, `${path}/${more}?wait=1000`, body),
            404,
            /^no such address$/,
          );
      }
      assert.deepEqual((await jobs.health()).jobs, { ...NOTHING, inQueue: 1 });
      for (const path of ['health/', 'requests/', 'webhooks/', 'webhooks/?limit=1', `status/${id}/`])
        assert.equal((await jobs.call('GET', path)).status, 200, path);
      assert.deepEqual((await jobs.call('POST', `cancel/${id}/`)).body, { id, status: 'CANCELLED' });
      assert.equal((await jobs.call('POST', 'run/', { input: 1 })).body.status, 'IN_QUEUE');
      assert.deepEqual((await jobs.call<unknown>('POST', 'purge-queue/')).body, {
        removed: 1,
        status: 'completed',
      });
    });

    test('two slashes before the endpoint, as a base address with one at its end makes them: as one', async () => {
      const jobs = await endpoint();
      const slashed = queueEndpointClient(
        createApiClient(fixture.server.url, ann.key),
        `/${jobs.id}`,
        ann.key,
      );
      const worker = slashed.worker();
      const id = await slashed.run({ n: 1 });
      assert.equal((await worker.take()).id, id);
      assert.equal((await worker.ping([id])).status, 200);
      await worker.done(id, { output: 'there' });
      for (const { status, output } of [await slashed.status(id), await jobs.status(id)])
        assert.deepEqual([status, output], ['COMPLETED', 'there']);
      assertJobApiError(await slashed.call('POST', 'nosuch', { input: 1 }), 400, /^not allowed for QB API$/);
      assertJobApiError(
        await createApiClient(fixture.server.url, ann.key).call('POST', '/v2//nosuchendpoint/run', {
          input: {},
        }),
        404,
        /^endpoint "nosuchendpoint" not found$/,
      );
      worker.close();
    });

    test('an Idempotency-Key with another body: 409, and the first job stays', async () => {
      const jobs = await endpoint();
      const submit = (path: string, input: unknown): Promise<ApiResponse<JobView>> =>
        jobs.call('POST', path, { input }, { 'idempotency-key': 'one' });
      const { body } = await submit('run', 1);
      for (const path of ['run', 'runsync'])
        assertJobApiError(await submit(path, 2), 409, /Idempotency-Key/i);
      assert.deepEqual([(await submit('run', 1)).body, (await jobs.health()).jobs.inQueue], [body, 1]);
    });

    test('a key without access to this endpoint: 403, and nothing happens', async () => {
      const [jobs, other] = [await endpoint(), await endpoint()];
      const id = await jobs.run();
      const {
        body: { key },
      } = await ann.call<{ key: string }>('POST', '/v2/account/api-keys', {
        name: 'elsewhere',
        access: 'RESTRICTED',
        scopes: { serverless: 'WRITE' },
        endpoints: [other.id],
      });
      const without = queueEndpointClient(createApiClient(fixture.server.url, key), jobs.id, key);
      for (const [method, path] of [
        ['POST', 'run'],
        ['GET', `status/${id}`],
        ['POST', `cancel/${id}`],
        ['POST', 'purge-queue'],
        ['GET', 'webhooks'],
        ['GET', `logs/${id}`],
      ] as const) {
        assertJobApiError(
          await without.call(method, path, method === 'POST' ? { input: {} } : undefined),
          403,
          /^access denied/,
        );
      }
      assert.deepEqual((await jobs.health()).jobs, { ...NOTHING, inQueue: 1 });
    });

    test('a result for a job that another worker now holds: 200 to the first, and only the second counts', async () => {
      const jobs = await endpoint({ timeout: 5_000 });
      const [first, second] = [jobs.worker('first'), jobs.worker('second')];
      const id = await taken(jobs, first);
      assert.equal((await jobs.waitForEnd(id)).status, 'TIMED_OUT');
      await jobs.call('POST', `retry/${id}`);
      assert.equal((await second.take()).id, id);
      for (const body of [{ output: 'stale' }, { error: 'stale' }])
        assert.equal((await first.done(id, body)).status, 200);
      assert.deepEqual(
        [(await first.progress(id, 'stale')).status, (await first.chunk(id, { output: 'stale' })).status],
        [200, 200],
      );
      assert.deepEqual(await standing(jobs, id), ['IN_PROGRESS', undefined, undefined]);
      assert.equal((await second.done(id, { output: 'fresh' })).status, 200);
      await first.done(id, { output: 'stale' });
      assert.deepEqual(await standing(jobs, id), ['COMPLETED', 'fresh', undefined]);
      assert.deepEqual((await jobs.call('GET', `stream/${id}`)).body, [{ output: 'fresh' }]);
      for (const worker of [first, second]) worker.close();
    });

    test('a result twice, progress after the end and a chunk out of turn: 200, and nothing changes', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const [id, waiting] = [await taken(jobs, worker), await jobs.run({ n: 2 })];
      await worker.chunk(id, { output: 'in turn' });
      assert.equal((await worker.done(id, { output: 'first' })).status, 200);
      const late: [string, () => Promise<WorkerResponse>][] = [
        ['the same result', () => worker.done(id, { output: 'first' })],
        ['another result', () => worker.done(id, { output: 'second' })],
        ['an error', () => worker.done(id, { error: 'late' })],
        ['progress', () => worker.progress(id, 'late')],
        ['a chunk', () => worker.chunk(id, { output: 'late' })],
        ['a chunk of a job that nobody has taken', () => worker.chunk(waiting, { output: 'early' })],
        ['a result of it', () => worker.done(waiting, { output: 'early' })],
        ['a chunk of a job that is not there', () => worker.chunk(NO_SUCH_JOB, { output: 'lost' })],
      ];
      for (const [what, post] of late) {
        assert.equal((await post()).status, 200, what);
        assert.deepEqual(await standing(jobs, id), ['COMPLETED', 'first', undefined], what);
        assert.deepEqual(await standing(jobs, waiting), ['IN_QUEUE', undefined, undefined], what);
      }
      assert.deepEqual((await jobs.call('GET', `stream/${id}`)).body, [{ output: 'in turn' }]);
      assert.deepEqual((await jobs.health()).jobs, { ...NOTHING, completed: 1, inQueue: 1 });
      worker.close();
    });

    test('a result that is no JSON: 400 with the reason, and the job waits for one that is', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const id = await taken(jobs, worker);
      for (const body of ['', 'output=1', '[]', '{"output":']) {
        for (const reply of [await worker.done(id, body), await worker.chunk(id, body)]) {
          assert.deepEqual([reply.status, Object.keys(reply.body)], [400, ['error']], body);
        }
      }
      assert.deepEqual(await standing(jobs, id), ['IN_PROGRESS', undefined, undefined]);
      await worker.done(id, { output: 1 });
      assert.deepEqual(await standing(jobs, id), ['COMPLETED', 1, undefined]);
      worker.close();
    });
  });
}
