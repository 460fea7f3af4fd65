import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { WorkerTokens } from '../packages/cloud/src/auth/worker-tokens.ts';
import { createApiClient } from '../packages/testing/src/api-client.ts';
import { DATABASES } from '../packages/testing/src/test-database.ts';
import {
  createQueueEndpoint,
  NO_SUCH_JOB,
  submitAndTake,
  measureTime,
} from '../packages/testing/src/queue-endpoint-client.ts';
import type { QueueEndpointClient } from '../packages/testing/src/queue-endpoint-client.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';
import { createPublicProtocolWorker } from '../packages/testing/src/protocol-workers.ts';
import type {
  TakenJob,
  PublicProtocolWorker,
  WorkerResponse,
} from '../packages/testing/src/protocol-workers.ts';

const MASTER_KEY = '0f'.repeat(32);

for (const kind of DATABASES) {
  describe(`the requests of a worker, on ${kind}`, { concurrency: true }, () => {
    const fixture = serverFixture(kind, { BERTH_RATE_LIMITS: 'off', BERTH_MASTER_KEY: MASTER_KEY });
    let ann: TestAccount;
    before(async () => {
      ann = await fixture.createAccount('ann');
    });
    const endpoint = (settings: Record<string, unknown> = {}): Promise<QueueEndpointClient> =>
      createQueueEndpoint(fixture.server.url, ann.key, settings);

    test('idle connections are kept longer than any worker keeps them', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const id = await submitAndTake(jobs, worker);
      for (const { headers } of [
        await worker.ping(),
        await worker.done(id, {}),
        await worker.chunk(id, {}),
      ]) {
        assert.equal(headers.connection, 'keep-alive');
        assert.ok(
          Number(/timeout=(\d+)/.exec(String(headers['keep-alive']))?.[1]) >= 75,
          String(headers['keep-alive']),
        );
      }
      worker.close();
    });

    test('a request is read as the SDK sends it: no body, stale request id, unknown parameters', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      const [first, second] = [await jobs.run(), await jobs.run()];
      await worker.pollBatch(2);
      const stale = { 'x-request-id': first, 'content-type': 'application/json' };
      const id = await jobs.run();
      const taken = await worker.send<TakenJob>(
        'GET',
        `job-take/${worker.workerId}?gpu=NVIDIA+A40&retry_ping=1&job_in_progress=1&job_in_progress=1&future=%F0%9F%8E%89`,
        { headers: stale },
      );
      assert.deepEqual([taken.status, taken.body.id], [200, id]);
      // The path names the job; the header may be another one's.
      const posted = await worker.send(
        'POST',
        `job-done/${worker.workerId}/${second}?gpu=none&isStream=false`,
        {
          body: '{"output":"of the second"}',
          headers: { ...stale, 'content-type': 'application/x-www-form-urlencoded', charset: 'utf-8' },
        },
      );
      assert.equal(posted.status, 200);
      assert.equal((await jobs.status(first)).status, 'IN_PROGRESS');
      assert.equal((await jobs.status(second)).output, 'of the second');
      // Workers of version 1.5 name no isStream.
      assert.equal(
        (await worker.send('POST', `job-done/${worker.workerId}/${first}?gpu=none`, { body: '{"output":1}' }))
          .status,
        200,
      );
      assert.equal((await jobs.status(first)).output, 1);
      worker.close();
    });

    test('a wrong key is refused slowly: less than one request a second', async () => {
      const jobs = await endpoint();
      const bob = await fixture.createAccount(`bob of ${kind}`);
      const readOnly = (
        await ann.call<{ key: string }>('POST', '/v2/account/api-keys', {
          name: 'reader',
          access: 'READ_ONLY',
        })
      ).body.key;
      await jobs.run();
      const cases: [string, number][] = [
        ['rpa_WRONG', 401],
        ['', 401],
        ['rpw_wrong', 401],
        [bob.key, 404],
        [readOnly, 403],
      ];
      await Promise.all(
        cases.flatMap(([key, status]) => {
          const worker = createPublicProtocolWorker({
            url: fixture.server.url,
            endpointId: jobs.id,
            workerId: 'w',
            key,
          });
          const asks = [
            () => worker.poll(),
            () => worker.pollBatch(2),
            () => worker.stops(),
            ...(status === 404 ? [] : [() => worker.done(NO_SUCH_JOB, {}), () => worker.ping()]),
          ];
          return asks.map(async (ask) => {
            const { took, result } = await measureTime(ask as () => Promise<WorkerResponse>);
            assert.equal(result.status, status, result.text);
            assert.ok(took > 1_000, `refused after ${took} ms`);
            assert.deepEqual(Object.keys(result.body), ['error']);
          });
        }),
      );
      assert.equal((await jobs.health()).jobs.inQueue, 1);
    });

    test("a worker's own token opens the worker side of its endpoint under its name, and nothing else", async () => {
      const [jobs, other] = [await endpoint(), await endpoint()];
      const token = new WorkerTokens(Buffer.from(MASTER_KEY, 'hex')).tokenFor(jobs.id, 'mine');
      const as = (endpointId: string, workerId: string): PublicProtocolWorker =>
        createPublicProtocolWorker({ url: fixture.server.url, endpointId, workerId, key: token });
      const id = await jobs.run();
      const mine = as(jobs.id, 'mine');
      assert.equal((await mine.take()).id, id);
      await mine.chunk(id, { output: 'piece' });
      await mine.done(id, { output: 'whole' });
      assert.equal((await mine.ping()).status, 200);
      assert.equal((await jobs.status(id)).output, 'whole');
      await Promise.all(
        [as(jobs.id, 'yours'), as(other.id, 'mine')].map(async (stranger) =>
          assert.equal((await stranger.poll()).status, 401),
        ),
      );
      const client = createApiClient(fixture.server.url, token);
      for (const [method, path] of [
        ['GET', `/v2/${jobs.id}/health`],
        ['POST', `/v2/${jobs.id}/run`],
        ['GET', `/v2/${jobs.id}/status/${id}`],
        ['GET', '/v2/serverless'],
        ['GET', '/v1/endpoints'],
        ['GET', '/v2/account'],
      ] as const) {
        assert.equal(
          (await client.call(method, path, method === 'POST' ? { input: {} } : undefined)).status,
          401,
          path,
        );
      }
      assert.equal(
        (await client.call('POST', `/graphql?api_key=${token}`, { query: '{ myself { id } }' })).status,
        401,
      );
      mine.close();
    });

    test('methods and names that are none are refused', async () => {
      const jobs = await endpoint();
      const worker = jobs.worker();
      await jobs.run();
      for (const [path, method] of [
        ['job-take/w', 'GET'],
        ['job-take-batch/w', 'GET'],
        ['job-stop/w', 'GET'],
        ['ping/w', 'GET'],
        [`job-done/w/${NO_SUCH_JOB}`, 'POST'],
        [`job-stream/w/${NO_SUCH_JOB}`, 'POST'],
      ] as const) {
        for (const wrong of ['GET', 'POST', 'PUT', 'DELETE'].filter((name) => name !== method)) {
          const { status, headers } = await worker.send(
            wrong,
            `${path}?x=1`,
            wrong === 'GET' ? {} : { body: '{}' },
          );
          assert.deepEqual([status, headers['allow']], [405, method], `${wrong} ${path}`);
        }
      }
      await Promise.all(
        ['%00', 'a%20b', 'x'.repeat(201), '%ff', ''].map(async (name) => {
          const { took, result } = await measureTime(() =>
            worker.send('GET', `job-take/${name}?job_in_progress=0`),
          );
          assert.ok(result.status === 429 || result.status === 404, `${name}: ${result.status}`);
          assert.ok(took > 1_000, `${name} was refused after ${took} ms`);
        }),
      );
      assert.equal((await jobs.health()).jobs.inQueue, 1);
      worker.close();
    });
  });
}
