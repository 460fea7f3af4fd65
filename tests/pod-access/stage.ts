import assert from 'node:assert/strict';
import { after, afterEach, before } from 'node:test';
import type { Client } from '../support/client.ts';
import { freshDatabase } from '../support/databases.ts';
import type { TestDatabase } from '../support/databases.ts';
import type { EngineUnderTest } from '../support/engine-under-test.ts';
import { runningPod } from '../support/pods.ts';
import type { PodView } from '../support/pods.ts';
import { startServer } from '../support/server.ts';
import type { TestServer } from '../support/server.ts';
import { until } from '../support/serverless.ts';
import { logLines } from '../support/story.ts';

/** A running server and one engine. */
export interface PodStage {
  server(): TestServer;
  client(key?: string): Client;
  /** A pod that runs on this engine; it is gone after the test. Answers its id. */
  pod(body?: Record<string, unknown>): Promise<string>;
  /** Pods of this engine listen on the machine's own ports. */
  sharesPorts: boolean;
  dataCenterId: string;
  image(): string;
}

export function podStage(
  open: () => Promise<EngineUnderTest>,
  { dataCenterId, sharesPorts }: { dataCenterId: string; sharesPorts: boolean },
): PodStage {
  let place: TestDatabase;
  let server: TestServer;
  let engine: EngineUnderTest;
  const client = (key?: string): Client => server.client(key);
  before(async () => {
    place = await freshDatabase('sqlite');
    engine = await open();
    server = await startServer(place, { ...engine.env, BERTH_RATE_LIMITS: 'off', BERTH_DOMAIN: 'pods.test' });
    await until(`${dataCenterId} is there`, async () =>
      (await client().call('GET', '/v2/catalog/datacenters')).text.includes(dataCenterId),
    );
  });
  afterEach(async () => {
    for (const { id } of (await client().call<{ pods: PodView[] }>('GET', '/v2/pods')).body.pods)
      await client().call('DELETE', `/v2/pods/${id}`);
  });
  after(async () => {
    assert.deepEqual(
      logLines(server).filter(({ level }) => level === 'error'),
      [],
    );
    await server.stop();
    await engine.close();
    await place.drop();
  });
  return {
    server: () => server,
    client,
    pod: async (body = {}) =>
      (await runningPod(client(), { image: engine.image, dataCenterIds: [dataCenterId], ...body })).id,
    sharesPorts,
    dataCenterId,
    image: () => engine.image,
  };
}
