import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { ApiClient } from '../../packages/testing/src/api-client.ts';
import { createTestDatabase } from '../../packages/testing/src/test-database.ts';
import type { TestDatabase } from '../../packages/testing/src/test-database.ts';
import type { EngineFixture } from '../../packages/testing/src/engine-fixture.ts';
import { podAction, containerLogLines, getPod } from '../../packages/testing/src/pod-client.ts';
import type { PodView } from '../../packages/testing/src/pod-client.ts';
import { startServerProcess } from '../../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../../packages/testing/src/server-process.ts';
import { parseLogLines } from '../../packages/testing/src/server-fixture.ts';
import { ALL_REDUCE_COMMAND } from '../../packages/testing/src/all-reduce-program.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';
import { A40 } from './cluster-client.ts';
import type { ClusterPod, ClusterView } from './cluster-client.ts';

const NODES = 4;

/** What a cluster does on any engine that can give pods one network. */
export function clusterEngineSuite(name: string, open: () => Promise<EngineFixture>): void {
  describe(`clusters of the ${name} engine`, () => {
    let engine: EngineFixture;
    let place: TestDatabase;
    let server: ServerProcess;
    let client: ApiClient;
    const up = async (): Promise<void> => {
      server = await startServerProcess(place, {
        BERTH_RATE_LIMITS: 'off',
        BERTH_GPUS: `16x ${A40}`,
        ...engine.env,
      });
      client = server.client();
      await waitFor('the data center is there', async () =>
        (await client.call('GET', '/v2/catalog/datacenters')).text.includes(engine.dataCenterId),
      );
    };
    before(async () => {
      engine = await open();
      place = await createTestDatabase('sqlite');
      await up();
    });
    after(async () => {
      for (const { id } of (await client.call<{ clusters: ClusterView[] }>('GET', '/v2/clusters')).body
        .clusters)
        await client.call('DELETE', `/v2/clusters/${id}`);
      assert.deepEqual(
        parseLogLines(server).filter(({ level }) => level === 'error'),
        [],
      );
      await server.stop();
      await engine.close();
      await place.drop();
    });

    const create = async (body: Record<string, unknown> = {}): Promise<ClusterView> => {
      const made = await client.call<ClusterView>('POST', '/v2/clusters', {
        name: 'c',
        type: 'TRAINING',
        compute: { gpuTypeId: A40, gpuCountPerPod: 2, podCount: NODES },
        image: engine.image,
        cmd: ALL_REDUCE_COMMAND,
        ...body,
      });
      assert.equal(made.status, 201, made.text);
      return made.body;
    };
    const membersOf = async (id: string): Promise<ClusterPod[]> =>
      (await client.call<{ pods: ClusterPod[] }>('GET', `/v2/clusters/${id}/pods`)).body.pods;
    const allRun = (id: string): Promise<ClusterView> =>
      waitFor(
        `all of ${id} run`,
        async () => {
          const { body } = await client.call<ClusterView>('GET', `/v2/clusters/${id}`);
          return body.pods.byStatus['RUNNING'] === body.pods.total && body;
        },
        60_000,
      );
    const summed = (members: readonly ClusterPod[], sum: number, times = 1): Promise<unknown> =>
      waitFor(
        'every node has the sum',
        async () => {
          const lines = await Promise.all(members.map(({ id }) => containerLogLines(client, id)));
          return lines.every(
            (written) =>
              written.filter((line) => line === `sum ${sum}`).length >= times &&
              written.includes('passed on') &&
              written.some((line) => line.startsWith('token from')),
          );
        },
        60_000,
      );
    const SUM = (NODES * (NODES + 1)) / 2;

    test('a distributed job runs across the members, also of two clusters at once, and after one was started anew', {
      timeout: 200_000,
    }, async () => {
      const [one, two] = [await create(), await create({ name: 'other' })];
      assert.notEqual(one.network.cidr, two.network.cidr);
      for (const { id } of [one, two]) {
        const whole = await allRun(id);
        const members = await membersOf(id);
        assert.deepEqual(
          [whole.primary.podId, whole.dataCenterId, members.map(({ cluster }) => cluster.rank)],
          [members[0]?.id, engine.dataCenterId, [0, 1, 2, 3]],
        );
        await summed(members, SUM);
        assert.deepEqual(
          (await containerLogLines(client, members[1]?.id ?? '')).filter((line) => line.startsWith('token')),
          ['token from 0'],
        );
      }
      const members = await membersOf(one.id);
      const [first, ...others] = members;
      for (const { id } of [...others, first as ClusterPod])
        assert.equal((await podAction(client, id, 'stop')).status, 200);
      await waitFor(
        'all are stopped',
        async () => (await membersOf(one.id)).every(({ status }) => status === 'EXITED'),
        60_000,
      );
      for (const { id } of members) assert.equal((await podAction(client, id, 'start')).status, 200);
      await allRun(one.id);
      await summed(members, SUM, 2);
      assert.deepEqual(
        (await membersOf(one.id)).map(({ cluster }) => cluster.ip),
        members.map(({ cluster }) => cluster.ip),
      );
      assert.equal((await client.call('DELETE', `/v2/clusters/${two.id}`)).status, 204);
      await summed(members, SUM, 2);
      assert.equal((await client.call('DELETE', `/v2/clusters/${one.id}`)).status, 204);
      for (const { id } of members) assert.equal((await client.call('GET', `/v2/pods/${id}`)).status, 404);
      for (const { id } of [one, two])
        assert.ok(!((await engine.networks?.()) ?? []).includes(`berth-${id}`), 'its network is gone too');
    });

    test('it goes on while Berth is away, and is whole after that', { timeout: 200_000 }, async () => {
      const { id } = await create();
      await allRun(id);
      const before = await membersOf(id);
      await server.kill();
      await up();
      const after = await membersOf(id);
      assert.deepEqual(
        after.map((member) => [member.id, member.startedAt, member.cluster]),
        before.map((member) => [member.id, member.startedAt, member.cluster]),
      );
      for (const member of after) assert.equal((await getPod(client, member.id)).status, 'RUNNING');
      await summed(after, SUM);
      assert.equal((await client.call('DELETE', `/v2/clusters/${id}`)).status, 204);
      await waitFor(
        'nothing of it is left',
        async () =>
          (await client.call<{ pods: PodView[] }>('GET', '/v2/pods?includeClusterPods=true')).body.pods
            .length === 0,
      );
    });
  });
}
