import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { ApiClient } from '../packages/testing/src/api-client.ts';
import { loadOpenApiContract, validatingClient } from '../packages/testing/src/openapi-contract.ts';
import { createResource, queueEndpoint } from '../packages/testing/src/create-resource.ts';
import { createRunningPod } from '../packages/testing/src/pod-client.ts';
import { createQueueEndpoint } from '../packages/testing/src/queue-endpoint-client.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../packages/testing/src/server-process.ts';
import { createTestDatabase, DATABASES } from '../packages/testing/src/test-database.ts';
import type { DatabaseKind, TestDatabase } from '../packages/testing/src/test-database.ts';
import { waitFor, waitUntilPasses } from '../packages/testing/src/wait-for.ts';

interface Measured {
  average: number;
  max: number;
}

interface Values {
  requests: number;
  completed: number;
  failed: number;
  waitTime: Record<string, number> | null;
  runTime: Record<string, number> | null;
  cpu: Measured | null;
  memory: Measured | null;
  gpu: Measured | null;
  gpuMemory: Measured | null;
  cost: number;
}
interface History {
  stepSeconds: number;
  points: Values[];
  total: Values;
}

/** Ten cents a second. */
const PRICES = 'prices: { gpu: { NVIDIA GeForce RTX 4090: 360 } }\n';

// Most of the time they wait.
describe('history', { concurrency: true }, () => DATABASES.forEach(historySuite));

function historySuite(kind: DatabaseKind): void {
  describe(`history, on ${kind}`, { concurrency: false }, () => {
    let database: TestDatabase;
    let server: ServerProcess;
    let client: ApiClient;
    const start = async (): Promise<void> => {
      server = await startServerProcess(database, {
        BERTH_RATE_LIMITS: 'off',
        BERTH_CONFIG: join(database.data, 'berth.yaml'),
      });
      client = validatingClient(server.client(), await loadOpenApiContract(server.client()));
    };
    before(async () => {
      database = await createTestDatabase(kind);
      writeFileSync(join(database.data, 'berth.yaml'), PRICES);
      await start();
    });
    after(async () => {
      await server.stop();
      await database.drop();
    });

    test('what jobs did is counted exactly, also across a kill', async () => {
      const endpoint = await createQueueEndpoint(server.url, server.key);
      const worker = endpoint.worker();
      for (const error of [undefined, undefined, 'no']) {
        const id = await endpoint.run();
        assert.equal((await worker.take())?.id, id);
        await worker.done(id, error === undefined ? { output: 1 } : { error });
      }
      await endpoint.run();
      await server.kill();
      await start();
      const { status, body, text } = await client.call<History>(
        'GET',
        `/v2/serverless/${endpoint.id}/metrics?range=30m&step=1m`,
      );
      assert.equal(status, 200, text);
      assert.equal(body.points.length, 30);
      assert.deepEqual([body.total.requests, body.total.completed, body.total.failed], [4, 2, 1]);
      assert.ok((body.total.runTime?.['p98'] ?? -1) >= (body.total.runTime?.['p50'] ?? 0), text);
      assert.ok(body.total.waitTime !== null, text);
      const hourly = await client.call<History>('GET', `/v2/serverless/${endpoint.id}/metrics?range=7d`);
      assert.equal(hourly.body.stepSeconds % 3600, 0);
      assert.equal(hourly.body.total.completed, 2);
      for (const [query, expected] of [
        ['range=abc', 422],
        ['range=90d', 400],
        ['range=7d&step=1m', 400],
        ['range=1h&step=2h', 400],
      ] as const)
        assert.ok(
          [expected, 422].includes(
            (await client.call('GET', `/v2/serverless/${endpoint.id}/metrics?${query}`)).status,
          ),
          query,
        );
      assert.equal((await client.call('GET', '/v2/serverless/unknown/metrics')).status, 404);
      await client.call('DELETE', `/v2/serverless/${endpoint.id}`);
    });

    test('what a pod and a worker use and cost is there after a restart', async () => {
      const endpointId = await createResource(
        client,
        '/v2/serverless',
        queueEndpoint('measured', 'local/echo', { min: 1, max: 1 }),
      );
      const workerId = await waitFor('a worker that is ready', async () => {
        const { body } = await client.call<{ workers: { id: string; status: string }[] }>(
          'GET',
          `/v2/serverless/${endpointId}/workers`,
        );
        return body.workers.find(({ status }) => status === 'IDLE')?.id;
      });
      const { id } = await createRunningPod(client, {
        cmd: ['sh', '-c', 'while :; do sleep 0.05; done'],
        gpu: { id: 'NVIDIA GeForce RTX 4090', count: 1 },
      });
      await waitUntilPasses(async () => {
        const { text } = await server.client().call('GET', '/metrics');
        assert.match(text, /^berth_gpu_utilization_ratio\{data_center="LOCAL-1"\} 0$/m);
      }, 40_000);
      // A stop writes what was measured.
      await server.stop();
      await start();
      const { body, text } = await client.call<History>('GET', `/v2/pods/${id}/metrics?range=1h`);
      assert.equal(body.points.length, 60, text);
      const { cpu, memory, gpu, gpuMemory, cost } = body.total;
      assert.ok((memory?.max ?? 0) > 100_000, JSON.stringify(memory));
      assert.ok((cpu?.max ?? 0) > 0, JSON.stringify(cpu));
      // Virtual GPUs are never busy.
      assert.deepEqual([gpu?.max, gpuMemory?.max], [0, 0]);
      assert.ok(cost > 0.5, String(cost));
      await client.call('DELETE', `/v2/pods/${id}`);
      const worker = (path: string) =>
        client.call<History>('GET', `/v2/serverless/${endpointId}/workers/${path}`);
      const used = await worker(`${workerId}/history?range=6h&step=1h`);
      assert.equal(used.status, 200, used.text);
      assert.equal(used.body.points.length, 6, used.text);
      assert.ok((used.body.total.memory?.max ?? 0) > 100_000, used.text);
      assert.notEqual(used.body.total.cpu, null);
      assert.equal((await worker('unknown/history')).status, 404);
      assert.equal((await worker(`${workerId}/history?range=3d`)).status, 400);
      await client.call('DELETE', `/v2/serverless/${endpointId}`);
    });
  });
}
