import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import type { ApiClient } from './api-client.ts';
import { createTestDatabase } from './test-database.ts';
import type { TestDatabase } from './test-database.ts';
import type { EngineFixture } from './engine-fixture.ts';
import { startServerProcess } from './server-process.ts';
import type { ServerProcess } from './server-process.ts';
import { listWorkers } from './deploy-handler.ts';
import { nodeCommand } from './worker-sources.ts';
import { waitFor } from './wait-for.ts';

export interface JobView {
  id: string;
  status: string;
  output?: unknown;
  error?: string;
  reason?: string;
  workerId?: string;
}

/** A server with one engine for its workers, and what one does with it. */
export interface ServerlessFixture {
  engine: EngineFixture;
  database: TestDatabase;
  server: ServerProcess;
  client: ApiClient;
  /** An endpoint whose workers run this code. */
  deploy(name: string, code: string, settings?: Record<string, unknown>): Promise<string>;
  run(endpointId: string, input: unknown): Promise<string>;
  runSync(endpointId: string, input: unknown): Promise<JobView>;
  status(endpointId: string, id: string): Promise<JobView>;
  waitForEnd(endpointId: string, id: string, withinMs?: number): Promise<JobView>;
  /** Resolves with the reason of a waiting job once it says this. */
  waitForReason(endpointId: string, id: string, wanted: RegExp): Promise<string>;
  /** Removes the endpoint. Nothing of it may be there afterwards. */
  remove(endpointId: string): Promise<void>;
  /** Ends the server as a power cut would and starts it again at the same address. */
  killAndRestart(): Promise<void>;
}

export function serverlessFixture(
  open: () => Promise<EngineFixture>,
  env: Record<string, string> = {},
): ServerlessFixture {
  const start = async (flags?: string[]): Promise<void> => {
    fixture.server = await startServerProcess(
      fixture.database,
      { BERTH_RATE_LIMITS: 'off', ...fixture.engine.env, ...env },
      flags,
    );
    fixture.client = fixture.server.client();
    await waitFor('the data center is there', async () =>
      (await fixture.client.call('GET', '/v2/catalog/datacenters')).text.includes(
        fixture.engine.dataCenterId,
      ),
    );
  };
  const fixture: ServerlessFixture = {
    engine: undefined as never,
    database: undefined as never,
    server: undefined as never,
    client: undefined as never,
    deploy: async (name, code, settings = {}) => {
      const { status, body, text } = await fixture.client.call<{ id: string }>('POST', '/v2/serverless', {
        name,
        type: 'QUEUE',
        image: fixture.engine.image,
        args: JSON.stringify(nodeCommand(code)),
        cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
        scaling: { type: 'REQUEST_COUNT', requestCount: 1 },
        workers: { min: 0, max: 1 },
        ...settings,
      });
      assert.equal(status, 201, text);
      return body.id;
    },
    run: async (endpointId, input) =>
      (await fixture.client.call<JobView>('POST', `/v2/${endpointId}/run`, { input })).body.id,
    runSync: async (endpointId, input) =>
      (await fixture.client.call<JobView>('POST', `/v2/${endpointId}/runsync?wait=60000`, { input })).body,
    status: async (endpointId, id) =>
      (await fixture.client.call<JobView>('GET', `/v2/${endpointId}/status/${id}`)).body,
    waitForEnd: (endpointId, id, withinMs = 60_000) =>
      waitFor(
        `job ${id} has ended`,
        async () => {
          const job = await fixture.status(endpointId, id);
          return ['IN_QUEUE', 'IN_PROGRESS'].includes(job.status) ? undefined : job;
        },
        withinMs,
      ),
    waitForReason: (endpointId, id, wanted) =>
      waitFor(`the reason is told: ${wanted}`, async () => {
        const { reason = '' } = await fixture.status(endpointId, id);
        return wanted.test(reason) ? reason : undefined;
      }),
    remove: async (endpointId) => {
      const { status, text } = await fixture.client.call('DELETE', `/v2/serverless/${endpointId}`);
      assert.equal(status, 204, text);
      assert.deepEqual([...(await fixture.engine.instancesOf(endpointId)).keys()], []);
    },
    killAndRestart: async () => {
      const { port } = new URL(fixture.server.url);
      await fixture.server.kill();
      await start(['--port', port]);
    },
  };
  before(async () => {
    fixture.engine = await open();
    fixture.database = await createTestDatabase('sqlite');
    await start();
  });
  after(async () => {
    const { body } = await fixture.client.call<{ endpoints: { id: string }[] }>('GET', '/v2/serverless');
    for (const { id } of body.endpoints) await fixture.remove(id);
    await fixture.server.stop();
    await fixture.database.drop();
    await fixture.engine.close();
  });
  return fixture;
}

export async function waitForReadyWorkers(
  fixture: ServerlessFixture,
  endpointId: string,
  count: number,
): Promise<string[]> {
  return waitFor(
    `${count} workers are ready`,
    async () => {
      const ready = (await listWorkers(fixture.client, endpointId)).filter(
        ({ status }) => status === 'IDLE' || status === 'RUNNING',
      );
      return ready.length === count ? ready.map(({ id }) => id).sort() : undefined;
    },
    90_000,
  );
}
