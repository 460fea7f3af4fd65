import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import type { ApiClient } from './api-client.ts';
import { createTestDatabase } from './test-database.ts';
import type { TestDatabase } from './test-database.ts';
import { startServerProcess } from './server-process.ts';
import type { ServerProcess } from './server-process.ts';

/** A real Berth for the clients of one file, and what its examples need to run there. */
export interface ClientFixture {
  server: ServerProcess;
  /** Berth's own client, to check the effects of the client under test. */
  client: ApiClient;
  /** An endpoint of one of the examples, with a worker that stays; answers its id. */
  deployExample(name: string, workers?: { min: number; max: number }): Promise<string>;
}

/** Everything goes before the server does: workers and pods outlive it. */
export function clientFixture(env: Record<string, string> = {}): ClientFixture {
  const fixture = {} as ClientFixture;
  let place: TestDatabase;
  before(async () => {
    place = await createTestDatabase('sqlite');
    fixture.server = await startServerProcess(place, env);
    fixture.client = fixture.server.client();
    fixture.deployExample = async (name, workers = { min: 1, max: 1 }) => {
      const made = await fixture.client.call<{ id: string }>('POST', '/v2/serverless', {
        name,
        type: 'QUEUE',
        image: `local/${name}`,
        cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
        scaling: { type: 'REQUEST_COUNT', requestCount: 1 },
        workers,
      });
      assert.equal(made.status, 201, made.text);
      return made.body.id;
    };
  });
  after(async () => {
    if (fixture.server === undefined) return;
    const { endpoints } = (
      await fixture.client.call<{ endpoints: { id: string }[] }>('GET', '/v2/serverless')
    ).body;
    for (const { id } of endpoints) await fixture.client.call('DELETE', `/v2/serverless/${id}`);
    const { pods } = (await fixture.client.call<{ pods: { id: string }[] }>('GET', '/v2/pods')).body;
    for (const { id } of pods) await fixture.client.call('DELETE', `/v2/pods/${id}`);
    await fixture.server.stop();
    await place.drop();
  });
  return fixture;
}
