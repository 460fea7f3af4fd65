import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createResource, queueEndpoint } from '../packages/testing/src/create-resource.ts';
import { writeLaterVersion } from '../packages/testing/src/later-version.ts';
import { PacedClients } from '../packages/testing/src/paced-clients.ts';
import { closeAfterTest } from '../packages/testing/src/safety/close-after-test.ts';
import { SeveralServers } from '../packages/testing/src/several-servers-fixture.ts';
import type { ServerSlot } from '../packages/testing/src/several-servers-fixture.ts';
import { createTestDatabase } from '../packages/testing/src/test-database.ts';
import { skipUnlessLong } from '../packages/testing/src/test-tier.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

const NEW_TABLE = 'create table of_a_later_version (name text primary key)';

/**
 * No release before this one can run on its schema, so this version is the earlier one, and the later one is a
 * copy with one more migration. Once a release can, its commit belongs here (`writeEarlierVersion`).
 */
const LATER_VERSIONS = [
  { name: 'a version of the same schema', migration: undefined, staysReady: true },
  {
    name: 'a version with a migration that only adds',
    migration: { statement: NEW_TABLE, expandsOnly: true },
    staysReady: true,
  },
  {
    name: 'a version with a migration that earlier servers do not know',
    migration: { statement: NEW_TABLE, expandsOnly: false },
    staysReady: false,
  },
];

for (const { name, migration, staysReady } of LATER_VERSIONS)
  test(`three servers are replaced by ${name}, one after the other and under load, without a 5xx`, {
    skip: skipUnlessLong,
    timeout: 300_000,
  }, async (t) => {
    const closing = closeAfterTest(t);
    const folder = mkdtempSync(join(tmpdir(), 'berth-versions-'));
    closing(async () => rmSync(folder, { recursive: true }));
    const later = writeLaterVersion(folder, migration);
    const servers = await SeveralServers.start(3, {
      database: await createTestDatabase('postgres', { empty: true }),
    });
    closing(() => servers.stop());
    const [first, second, third] = servers.slots;
    assert.ok(first !== undefined && second !== undefined && third !== undefined);
    const endpointId = await createResource(
      first.server.client(),
      '/v2/serverless',
      queueEndpoint('replaced', 'local/echo', { min: 2, max: 2 }),
    );
    /** What a load balancer sends requests to. */
    let rotation: ServerSlot[] = [...servers.slots];
    const clients = new PacedClients({
      urls: () => rotation.map(({ server }) => server.url),
      key: first.server.key,
      endpointId,
      clients: 6,
      intervalMs: 50,
    });
    closing(() => clients.stop());
    const status = async ({ server }: ServerSlot, path: string): Promise<number> =>
      (await server.client().call('GET', path)).status;
    const becomes = (slot: ServerSlot, wanted: number): Promise<unknown> =>
      waitFor(`/readyz answers ${wanted}`, async () => (await status(slot, '/readyz')) === wanted, 60_000);
    const schema = (): Promise<number> => servers.number('select max(version) from schema_version');

    /** Jobs are accepted, and whichever server is asked answers. */
    const check = async (step: string): Promise<void> => {
      const wanted = clients.acknowledged.size + 60;
      await waitFor(`${step}: jobs are accepted`, () => clients.acknowledged.size >= wanted, 60_000);
      for (const slot of servers.slots)
        for (const path of [
          '/v2/serverless',
          `/v2/serverless/${endpointId}/workers`,
          `/v2/${endpointId}/health`,
          '/v2/system',
          '/v2/pods',
        ])
          assert.equal(await status(slot, path), 200, `${step}: ${path} of ${servers.slots.indexOf(slot)}`);
    };
    const replace = async (slot: ServerSlot, program?: string): Promise<void> => {
      rotation = rotation.filter((other) => other !== slot);
      await clients.whenAnswered(slot.server.url);
      assert.equal(await slot.server.stop(), 0, slot.server.log().slice(-2_000));
      await servers.restart(slot, program);
      await becomes(slot, 200);
      rotation = [...rotation, slot];
    };

    clients.start();
    await check('old servers');
    const before = await schema();
    await replace(first, later);
    assert.equal((await schema()) > before, migration !== undefined);
    if (!staysReady) {
      // They say so, and still answer what reaches them.
      for (const slot of [second, third]) await becomes(slot, 503);
      await check('old servers on a newer schema');
      rotation = [first];
    } else {
      await check('one new server');
      // An old one may end and be started again meanwhile.
      await replace(third);
    }
    await check('a new server and old ones');
    for (const slot of [second, third]) {
      await replace(slot, later);
      await check('another new server');
    }
    await clients.stop();
    assert.deepEqual(
      clients.answers.filter(({ status: answered }) => answered !== 200),
      [],
    );
    assert.deepEqual(await clients.wrongEnds(), []);
  });
