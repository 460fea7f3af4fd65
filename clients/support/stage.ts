import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import type { Client } from '../../tests/support/client.ts';
import { freshDatabase } from '../../tests/support/databases.ts';
import type { TestDatabase } from '../../tests/support/databases.ts';
import { startServer } from '../../tests/support/server.ts';
import type { TestServer } from '../../tests/support/server.ts';

/** A real Berth for the clients of one file, and what its examples need to run there. */
export interface ClientStage {
  server: TestServer;
  /** Ours, to look at what theirs did. */
  client: Client;
  /** An endpoint of one of the examples, with a worker that stays; answers its id. */
  example(name: string, workers?: { min: number; max: number }): Promise<string>;
}

/** Everything goes before the server does: workers and pods outlive it. */
export function clientStage(env: Record<string, string> = {}): ClientStage {
  const stage = {} as ClientStage;
  let place: TestDatabase;
  before(async () => {
    place = await freshDatabase('sqlite');
    stage.server = await startServer(place, env);
    stage.client = stage.server.client();
    stage.example = async (name, workers = { min: 1, max: 1 }) => {
      const made = await stage.client.call<{ id: string }>('POST', '/v2/serverless', {
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
    if (stage.server === undefined) return;
    const { endpoints } = (await stage.client.call<{ endpoints: { id: string }[] }>('GET', '/v2/serverless'))
      .body;
    for (const { id } of endpoints) await stage.client.call('DELETE', `/v2/serverless/${id}`);
    const { pods } = (await stage.client.call<{ pods: { id: string }[] }>('GET', '/v2/pods')).body;
    for (const { id } of pods) await stage.client.call('DELETE', `/v2/pods/${id}`);
    await stage.server.stop();
    await place.drop();
  });
  return stage;
}
