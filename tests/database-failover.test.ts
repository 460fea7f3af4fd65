import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createResource, queueEndpoint } from '../packages/testing/src/create-resource.ts';
import { PacedClients } from '../packages/testing/src/paced-clients.ts';
import { PostgresPair } from '../packages/testing/src/postgres-pair.ts';
import { SeveralServers } from '../packages/testing/src/several-servers-fixture.ts';
import { skipUnlessLong } from '../packages/testing/src/test-tier.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

const data = mkdtempSync(join(tmpdir(), 'berth-failover-'));
let pair: PostgresPair | undefined;
let servers: SeveralServers | undefined;
before(async () => {
  if (skipUnlessLong !== undefined) return;
  pair = await PostgresPair.start();
  servers = await SeveralServers.start(2, {
    database: { kind: 'postgres', data, url: pair.primaryUrl, drop: async () => undefined },
  });
  await pair.addStandby();
});
after(async () => {
  await servers?.stop();
  await pair?.stop();
  rmSync(data, { recursive: true });
});

test('a database whose standby takes over loses no acknowledged job, and every server goes on', {
  skip: skipUnlessLong,
}, async () => {
  assert.ok(pair !== undefined && servers !== undefined);
  const { slots } = servers;
  const [one] = slots;
  assert.ok(one !== undefined);
  const endpointId = await createResource(
    one.server.client(),
    '/v2/serverless',
    queueEndpoint('failover', 'local/echo', { min: 2, max: 2 }),
  );
  const clients = new PacedClients({
    urls: () => slots.map(({ server }) => server.url),
    key: one.server.key,
    endpointId,
    clients: 8,
    intervalMs: 50,
  });
  clients.start();
  const moreJobs = async (what: string): Promise<void> => {
    const wanted = clients.acknowledged.size + 100;
    await waitFor(what, () => clients.acknowledged.size >= wanted, 60_000);
  };
  await moreJobs('jobs are accepted');
  await pair.killPrimary();
  await waitFor('the servers say so', () => clients.answers.some(({ status }) => status !== 200));
  const url = await pair.promote();
  for (const { cable } of slots) cable.retarget(url);
  await moreJobs('jobs are accepted by the new primary');
  await clients.stop();
  assert.deepEqual(await clients.wrongEnds(), []);
  assert.deepEqual([...new Set(clients.answers.map(({ status }) => status))].sort(), [200, 503]);
  for (const { server } of slots) {
    await waitFor(
      'the server is ready',
      async () => (await server.client().call('GET', '/readyz')).status === 200,
    );
    assert.deepEqual(
      server
        .log()
        .split('\n')
        .filter((line) => /"level":"fatal"/.test(line)),
      [],
    );
  }
});
