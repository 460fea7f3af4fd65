import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { uploadHandler } from '../packages/testing/src/deploy-handler.ts';
import { FLASH_HANDLER, askFlash, deployFlash } from '../packages/testing/src/flash-client.ts';
import { SeveralServers } from '../packages/testing/src/several-servers-fixture.ts';
import type { ServerSlot } from '../packages/testing/src/several-servers-fixture.ts';

describe('builds of flash, with two servers on machines of their own', () => {
  let servers: SeveralServers;
  before(async () => {
    servers = await SeveralServers.start(2);
  });
  after(() => servers?.stop());

  const runsWith = async ({ server }: ServerSlot, endpointId: string, build: string): Promise<void> => {
    const path = `/v2/${endpointId}/runsync?wait=60000`;
    const { body, text } = await server
      .client()
      .call<{ output: { build: string } }>('POST', path, { input: 1 });
    assert.equal(body.output?.build, build, text);
  };
  const copies = ({ data }: ServerSlot): string[] => globSync('shared-files/*/*.tar.gz', { cwd: data });
  const parts = (): Promise<number> => servers.number('select count(*) from shared_file_parts');
  let deployed: { appId: string; endpointId: string };

  test('one that came to a follower runs wherever the leader starts its worker', async () => {
    const [leader, [follower]] = [await servers.leader(), await servers.followers()];
    assert.ok(follower);
    deployed = await deployFlash(follower.server.client(), {
      app: 'greetings',
      environment: 'production',
      build: 'the build',
      image: await uploadHandler(follower.server.client(), 'greeter', FLASH_HANDLER),
      finalizeAt: leader.server.client(),
    });
    await runsWith(leader, deployed.endpointId, 'the build');
    assert.deepEqual([copies(leader).length, copies(follower).length, await parts()], [1, 1, 1]);
  });

  test('they go with their app', async () => {
    const leader = await servers.leader();
    const client = leader.server.client();
    assert.equal((await client.call('DELETE', `/v2/serverless/${deployed.endpointId}`)).status, 204);
    await askFlash(
      client,
      'mutation ($input: String) { answer: deleteFlashApp(flashAppId: $input) }',
      deployed.appId,
    );
    assert.deepEqual([copies(leader), await parts()], [[], 0]);
    assert.equal(await servers.number('select count(*) from shared_files'), 0);
  });
});
