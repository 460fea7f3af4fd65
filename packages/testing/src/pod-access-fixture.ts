import assert from 'node:assert/strict';
import { after, afterEach, before } from 'node:test';
import type { ApiClient } from './api-client.ts';
import { createTestDatabase } from './test-database.ts';
import type { TestDatabase } from './test-database.ts';
import type { EngineFixture } from './engine-fixture.ts';
import { createRunningPod } from './pod-client.ts';
import type { PodView } from './pod-client.ts';
import { startServerProcess } from './server-process.ts';
import type { ServerProcess } from './server-process.ts';
import { parseLogLines } from './server-fixture.ts';
import { waitFor } from './wait-for.ts';

/** A running server and one engine. */
export interface PodAccessFixture {
  server(): ServerProcess;
  client(key?: string): ApiClient;
  /** A pod that runs on this engine; it is gone after the test. Answers its id. */
  createPod(body?: Record<string, unknown>): Promise<string>;
  /** Pods of this engine listen on the machine's own ports. */
  sharesPorts: boolean;
  dataCenterId: string;
  image(): string;
}

export function podAccessFixture(
  open: () => Promise<EngineFixture>,
  { dataCenterId, sharesPorts }: { dataCenterId: string; sharesPorts: boolean },
): PodAccessFixture {
  let place: TestDatabase;
  let server: ServerProcess;
  let engine: EngineFixture;
  const client = (key?: string): ApiClient => server.client(key);
  before(async () => {
    place = await createTestDatabase('sqlite');
    engine = await open();
    server = await startServerProcess(place, {
      ...engine.env,
      BERTH_RATE_LIMITS: 'off',
      BERTH_DOMAIN: 'pods.test',
    });
    await waitFor(`${dataCenterId} is there`, async () =>
      (await client().call('GET', '/v2/catalog/datacenters')).text.includes(dataCenterId),
    );
  });
  afterEach(async () => {
    for (const { id } of (await client().call<{ pods: PodView[] }>('GET', '/v2/pods')).body.pods)
      await client().call('DELETE', `/v2/pods/${id}`);
  });
  after(async () => {
    assert.deepEqual(
      parseLogLines(server).filter(({ level }) => level === 'error'),
      [],
    );
    await server.stop();
    await engine.close();
    await place.drop();
  });
  return {
    server: () => server,
    client,
    createPod: async (body = {}) =>
      (await createRunningPod(client(), { image: engine.image, dataCenterIds: [dataCenterId], ...body })).id,
    sharesPorts,
    dataCenterId,
    image: () => engine.image,
  };
}
