import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Client } from '../support/client.ts';
import { freshDatabase } from '../support/databases.ts';
import type { TestDatabase } from '../support/databases.ts';
import type { EngineUnderTest } from '../support/engine-under-test.ts';
import { act, linesOf, pod } from '../support/pods.ts';
import type { PodView } from '../support/pods.ts';
import { startServer } from '../support/server.ts';
import type { TestServer } from '../support/server.ts';
import { until } from '../support/serverless.ts';
import { logLines } from '../support/story.ts';
import { ALL_REDUCE } from './all-reduce.ts';

const A40 = 'NVIDIA A40';
const NODES = 4;

export interface ClusterView {
  id: string;
  name: string;
  type: string;
  compute: { gpuTypeId: string; gpuCountPerPod: number; podCount: number };
  dataCenterId: string;
  template?: string;
  pods: { total: number; byStatus: Record<string, number> };
  network: { cidr: string };
  primary: { podId: string; status: string };
}

export type Member = PodView & { cluster: { id: string; rank: number; role?: string; ip: string } };

/** What a cluster does on any engine that can give pods one network. */
export function clustersOn(name: string, open: () => Promise<EngineUnderTest>): void {
  describe(`clusters of the ${name} engine`, () => {
    let engine: EngineUnderTest;
    let place: TestDatabase;
    let server: TestServer;
    let client: Client;
    const up = async (): Promise<void> => {
      server = await startServer(place, {
        BERTH_RATE_LIMITS: 'off',
        BERTH_GPUS: `16x ${A40}`,
        ...engine.env,
      });
      client = server.client();
      await until('the data center is there', async () =>
        (await client.call('GET', '/v2/catalog/datacenters')).text.includes(engine.dataCenterId),
      );
    };
    before(async () => {
      engine = await open();
      place = await freshDatabase('sqlite');
      await up();
    });
    after(async () => {
      for (const { id } of (await client.call<{ clusters: ClusterView[] }>('GET', '/v2/clusters')).body
        .clusters)
        await client.call('DELETE', `/v2/clusters/${id}`);
      assert.deepEqual(
        logLines(server).filter(({ level }) => level === 'error'),
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
        cmd: ALL_REDUCE,
        ...body,
      });
      assert.equal(made.status, 201, made.text);
      return made.body;
    };
    const membersOf = async (id: string): Promise<Member[]> =>
      (await client.call<{ pods: Member[] }>('GET', `/v2/clusters/${id}/pods`)).body.pods;
    const allRun = (id: string): Promise<ClusterView> =>
      until(
        `all of ${id} run`,
        async () => {
          const { body } = await client.call<ClusterView>('GET', `/v2/clusters/${id}`);
          return body.pods.byStatus['RUNNING'] === body.pods.total && body;
        },
        60_000,
      );
    const summed = (members: readonly Member[], sum: number, times = 1): Promise<unknown> =>
      until(
        'every node has the sum',
        async () => {
          const lines = await Promise.all(members.map(({ id }) => linesOf(client, id)));
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
          (await linesOf(client, members[1]?.id ?? '')).filter((line) => line.startsWith('token')),
          ['token from 0'],
        );
      }
      const members = await membersOf(one.id);
      const [first, ...others] = members;
      for (const { id } of [...others, first as Member])
        assert.equal((await act(client, id, 'stop')).status, 200);
      await until(
        'all are stopped',
        async () => (await membersOf(one.id)).every(({ status }) => status === 'EXITED'),
        60_000,
      );
      for (const { id } of members) assert.equal((await act(client, id, 'start')).status, 200);
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
      for (const member of after) assert.equal((await pod(client, member.id)).status, 'RUNNING');
      await summed(after, SUM);
      assert.equal((await client.call('DELETE', `/v2/clusters/${id}`)).status, 204);
      await until(
        'nothing of it is left',
        async () =>
          (await client.call<{ pods: PodView[] }>('GET', '/v2/pods?includeClusterPods=true')).body.pods
            .length === 0,
      );
    });
  });
}
