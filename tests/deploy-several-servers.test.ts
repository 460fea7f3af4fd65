import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { runBerth } from '../packages/testing/src/berth-command.ts';
import { type ServerSlot, SeveralServers } from '../packages/testing/src/several-servers-fixture.ts';
import { createTemporaryFolder } from '../packages/testing/src/temporary-folder.ts';

describe('folders that were deployed, with two servers on machines of their own', () => {
  let servers: SeveralServers;
  before(async () => {
    servers = await SeveralServers.start(2);
  });
  after(() => servers?.stop());

  const berth = ({ server }: ServerSlot, ...args: string[]) =>
    runBerth<{ id: string }>(args, { BERTH_URL: server.url, BERTH_API_KEY: server.key });
  const images = async ({ server }: ServerSlot): Promise<string[]> =>
    (await server.client().call<{ images: { image: string }[] }>('GET', '/v2/images')).body.images.map(
      ({ image }) => image,
    );

  test('one that came to a follower runs wherever the leader starts it', async () => {
    const [leader, [follower]] = [await servers.leader(), await servers.followers()];
    assert.ok(follower);
    const folder = createTemporaryFolder('twice', {
      'handler.js': 'export default async ({ input }) => ({ twice: input * 2 });',
    });
    const deployed = await berth(follower, 'deploy', folder.path);
    assert.equal(deployed.code, 0, deployed.stderr);
    const { id } = deployed.json;
    const ran = await leader.server
      .client()
      .call<{ status: string; output: unknown }>('POST', `/v2/${id}/runsync?wait=60000`, { input: 21 });
    assert.deepEqual([ran.body.status, ran.body.output], ['COMPLETED', { twice: 42 }], ran.text);
    assert.deepEqual(await images(leader), await images(follower));
    assert.equal((await images(leader)).length, 1);
    await berth(leader, 'rm', id, '--yes');
    folder.remove();
  });
});
