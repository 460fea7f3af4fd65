import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createResource, queueEndpoint } from '../packages/testing/src/create-resource.ts';
import { skipWithoutVersion, writeEarlierVersion } from '../packages/testing/src/earlier-version.ts';
import { PacedClients } from '../packages/testing/src/paced-clients.ts';
import { closeAfterTest } from '../packages/testing/src/safety/close-after-test.ts';
import { SeveralServers } from '../packages/testing/src/several-servers-fixture.ts';
import type { ServerSlot } from '../packages/testing/src/several-servers-fixture.ts';
import { createTestDatabase } from '../packages/testing/src/test-database.ts';
import { skipUnlessLong } from '../packages/testing/src/test-tier.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

/** Commits in place of old releases. All lead by the lease. */
const OLD_VERSIONS = [
  { name: 'a version of the same schema', commit: 'bac992af', changesSchema: false, staysReady: true },
  {
    name: 'the last version before migration 30, which only adds',
    commit: 'b302ef2a~1',
    changesSchema: true,
    staysReady: true,
  },
  {
    name: 'the last version before migration 28',
    commit: '5d87b2a2~1',
    changesSchema: true,
    staysReady: false,
  },
];

for (const { name, commit, changesSchema, staysReady } of OLD_VERSIONS)
  test(`three servers of ${name} are replaced, one after the other and under load, without a 5xx`, {
    skip: skipUnlessLong ?? skipWithoutVersion(commit),
    timeout: 300_000,
  }, async (t) => {
    const closing = closeAfterTest(t);
    const folder = mkdtempSync(join(tmpdir(), 'berth-versions-'));
    closing(async () => rmSync(folder, { recursive: true }));
    const old = writeEarlierVersion(commit, folder);
    const servers = await SeveralServers.start(3, {
      database: await createTestDatabase('postgres', { empty: true }),
      program: old,
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
    await replace(first);
    assert.equal((await schema()) > before, changesSchema);
    if (!staysReady) {
      // They say so, and still answer what reaches them.
      for (const slot of [second, third]) await becomes(slot, 503);
      await check('old servers on a newer schema');
      rotation = [first];
    } else {
      await check('one new server');
      // An old one may end and be started again meanwhile.
      await replace(third, old);
    }
    await check('a new server and old ones');
    for (const slot of [second, third]) {
      await replace(slot);
      await check('another new server');
    }
    await clients.stop();
    assert.deepEqual(
      clients.answers.filter(({ status: answered }) => answered !== 200),
      [],
    );
    assert.deepEqual(await clients.wrongEnds(), []);
  });
