import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { workerShardOf } from '../packages/cloud/src/domain/endpoints/worker-shards.ts';
import { SeveralServers } from '../packages/testing/src/several-servers-fixture.ts';
import type { ServerSlot } from '../packages/testing/src/several-servers-fixture.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

const SHARDS = 6;
const ENDPOINTS = 12;
/** By the clock of the database. */
const NOW = '(extract(epoch from clock_timestamp()) * 1000)::bigint';
const IN_SHARDS = { BERTH_WORKER_SHARDS: String(SHARDS) };

interface System {
  servers: { address: string; leading: boolean; workerShards: number }[];
}

describe('three servers that divide the endpoints', () => {
  let servers: SeveralServers;
  const endpointIds: string[] = [];
  let killed: ServerSlot;
  before(async () => {
    servers = await SeveralServers.start(3, { env: IN_SHARDS });
  });
  after(() => servers?.stop());

  /** How many shards each server says that each has. */
  const shares = async (slot: ServerSlot): Promise<Map<string, number>> => {
    const { body } = await slot.server.client().call<System>('GET', '/v2/system');
    return new Map(body.servers.map(({ address, workerShards }) => [address, workerShards]));
  };
  const holderOf = async (endpointId: string): Promise<string> =>
    servers.text(
      `select address from servers join worker_shards on holder = servers.id and expires_at > ${NOW}
        where name = '${workerShardOf(endpointId, SHARDS) + 1}/${SHARDS}'`,
    );
  const run = async (slot: ServerSlot, endpointId: string, input: string): Promise<void> => {
    const ran = await slot.server
      .client()
      .call<{ status: string; output: unknown }>('POST', `/v2/${endpointId}/runsync?wait=60000`, { input });
    assert.deepEqual([ran.body.status, ran.body.output], ['COMPLETED', input], ran.text);
  };
  const liveWorkers = (endpointId: string): Promise<number> =>
    servers.number(`select count(*) from workers where endpoint_id = '${endpointId}' and ended_at is null`);

  test('each has a fair share, says so, and runs the workers of its endpoints on its machine', async () => {
    const [first] = servers.slots;
    assert.ok(first !== undefined);
    await waitFor('each has two shards', async () => [...(await shares(first)).values()].join() === '2,2,2');
    for (const { server } of servers.slots) {
      const { text } = await server.client().call('GET', '/metrics');
      assert.match(text, /^berth_worker_shards 2$/m);
    }
    const made = Array.from({ length: ENDPOINTS }, async (_, index) => {
      const slot = servers.slots[index % 3] ?? first;
      const { status, body, text } = await slot.server
        .client()
        .call<{ id: string }>('POST', '/v2/serverless', {
          name: `shared ${index}`,
          type: 'QUEUE',
          image: 'local/echo',
          cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
          scaling: { type: 'QUEUE_DELAY', queueDelay: 1 },
          workers: { min: 0, max: 1, idleTimeout: 1 },
        });
      assert.equal(status, 201, text);
      return body.id;
    });
    endpointIds.push(...(await Promise.all(made)));
    await Promise.all(
      endpointIds.map((id, index) => run(servers.slots[(index + 1) % 3] ?? first, id, `from ${index}`)),
    );
    for (const id of endpointIds) {
      const host = await servers.text(
        `select address from servers where host_id = (select host_id from instance_hosts
          join workers on instance_id = workers.id where endpoint_id = '${id}' limit 1)`,
      );
      assert.equal(host, await holderOf(id), 'a worker runs where its shard is');
    }
  });

  test('one is killed: its endpoints get workers again within 5 s, and nothing runs twice', async () => {
    const [asked, ...candidates] = servers.slots;
    assert.ok(asked !== undefined);
    await waitFor(
      'no worker is left',
      async () => (await servers.number('select count(*) from workers where ended_at is null')) === 0,
      60_000,
    );
    const holders = await Promise.all(endpointIds.map(holderOf));
    const countOf = ({ server }: ServerSlot): number =>
      holders.filter((holder) => holder === server.url).length;
    killed = candidates.toSorted((one, other) => countOf(other) - countOf(one))[0] ?? assert.fail();
    const concerned = endpointIds.filter((_, index) => holders[index] === killed.server.url);
    await killed.server.kill();
    const at = await servers.number(`select ${NOW}`);
    await Promise.all(concerned.map((id) => run(asked, id, 'after the kill')));
    const others = endpointIds.filter((id) => !concerned.includes(id));
    await Promise.all(others.map((id) => run(asked, id, 'after the kill')));
    const delays: number[] = [];
    for (const id of concerned) {
      const created = await servers.number(
        `select min(created_at) from workers where endpoint_id = '${id}' and created_at >= ${at} - 1000`,
      );
      delays.push(created - at);
      assert.ok(created - at < 5_000, `${id} got a worker after ${created - at} ms`);
    }
    process.stdout.write(
      `after kill -9, workers of ${concerned.length} endpoints after ${delays.join(', ')} ms\n`,
    );
    assert.ok(concerned.length > 0);
    assert.equal(
      await servers.number(
        `select coalesce(max(held), 0) from (select count(*) as held from workers where created_at >= ${at} - 1000
          group by endpoint_id) as counted`,
      ),
      1,
      'one worker for each',
    );
    const left = await shares(asked);
    assert.equal(
      [...left.values()].reduce((sum, held) => sum + held),
      SHARDS,
    );
    assert.equal(left.get(killed.server.url), 0);
  });

  test('it comes back, and gets its share without a worker being lost', async () => {
    const [asked] = servers.slots;
    assert.ok(asked !== undefined);
    await servers.restart(killed);
    await waitFor('each has two shards again', async () => {
      const found = await shares(asked);
      return servers.slots.every(({ server }) => found.get(server.url) === 2);
    });
    await Promise.all(endpointIds.map((id) => run(killed, id, 'with three again')));
    for (const id of endpointIds) assert.ok((await liveWorkers(id)) <= 1);
    const ids = "from usage_stretches where kind = 'serverless'";
    for (const id of endpointIds)
      assert.equal((await asked.server.client().call('DELETE', `/v2/serverless/${id}`)).status, 204);
    await waitFor(
      'nothing of them is left',
      async () => (await servers.number('select count(*) from workers')) === 0,
      60_000,
    );
    assert.equal(
      await servers.number(`select count(*) ${ids} and ended_at < 9000000000`),
      await servers.number(`select count(distinct unit_id) ${ids}`),
      'every worker is billed once, to its end',
    );
  });

  test('a server with another number of shards is refused while these run', async () => {
    const [, , third] = servers.slots;
    assert.ok(third !== undefined);
    await third.server.kill();
    await assert.rejects(
      servers.restart(third, undefined, { BERTH_WORKER_SHARDS: '1' }),
      /workerShards is 1 here, and 6/,
    );
    await servers.restart(third);
  });
});
