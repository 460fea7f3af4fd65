import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { ALL_REDUCE_COMMAND } from '../../packages/testing/src/all-reduce-program.ts';
import {
  kubernetesEngineFixture,
  type KubernetesEngineFixture,
} from '../../packages/testing/src/kubernetes/kubernetes-engine-fixture.ts';
import { withKubernetes } from '../../packages/testing/src/kubernetes/with-kubernetes.ts';
import { containerLogLines, podAction } from '../../packages/testing/src/pod-client.ts';
import { serverlessFixture } from '../../packages/testing/src/serverless-fixture.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';
import type { ClusterPod, ClusterView } from './cluster-client.ts';

const WITHIN_MS = 60_000;
/** Other files of the run use the usual names of GPUs on the same nodes. */
const GPUS = { gpuLabel: 'berth.test/product', gpuResource: 'berth.test/gpu' };
const PRINT_ENVIRONMENT =
  'for (const [name, value] of Object.entries(process.env)) console.log(`${name}=${value}`);';
const NODES = ['node-0', 'node-1'];

await withKubernetes((cluster) => {
  describe('clusters of the Kubernetes engine', () => {
    let engine: KubernetesEngineFixture;
    let members: ClusterPod[];
    let made: ClusterView;
    const fixture = serverlessFixture(async () => {
      engine = await kubernetesEngineFixture(cluster, GPUS);
      const resource = { [GPUS.gpuResource]: '1' };
      for (const node of NODES) {
        const path = `/api/v1/nodes/${node}`;
        await engine.cluster.merge(path, { metadata: { labels: { [GPUS.gpuLabel]: 'NVIDIA-A40' } } });
        await engine.cluster.merge(`${path}/status`, {
          status: { capacity: resource, allocatable: resource },
        });
      }
      return engine;
    });
    const list = async (): Promise<ClusterPod[]> =>
      (await fixture.client.call<{ pods: ClusterPod[] }>('GET', `/v2/clusters/${made.id}/pods`)).body.pods;
    const allAre = (status: string): Promise<ClusterPod[]> =>
      waitFor(
        `all are ${status}`,
        async () => {
          const pods = await list();
          return pods.length === NODES.length && pods.every((pod) => pod.status === status) && pods;
        },
        WITHIN_MS,
      );
    /** Every member brings its number to the first one, and passes a token to the next. */
    const summed = (times: number): Promise<unknown> =>
      waitFor(
        `the job is done ${times} times`,
        async () => {
          const logs = await Promise.all(members.map(({ id }) => containerLogLines(fixture.client, id)));
          return logs.every((lines) =>
            ['sum 3', 'passed on', /^token from/].every(
              (wanted) =>
                lines.filter((line) => (typeof wanted === 'string' ? line === wanted : wanted.test(line)))
                  .length >= times,
            ),
          );
        },
        WITHIN_MS,
      );

    before(async () => {
      const { status, body, text } = await fixture.client.call<ClusterView>('POST', '/v2/clusters', {
        name: 'c',
        type: 'RAY',
        compute: { gpuTypeId: 'NVIDIA A40', gpuCountPerPod: 1, podCount: NODES.length },
        dataCenterIds: [engine.dataCenterId],
        image: engine.image,
        cmd: ['node', '-e', `${PRINT_ENVIRONMENT}${ALL_REDUCE_COMMAND[2]}`],
      });
      assert.equal(status, 201, text);
      made = body;
      members = await allAre('RUNNING');
    });

    test('members reach each other by name and by address, on different nodes', async () => {
      await summed(1);
      assert.equal(made.network, undefined, 'its addresses are those of the pods');
      const pods = await engine.cluster.get<{
        items: { spec: { nodeName: string }; status: { podIP: string } }[];
      }>(`/api/v1/namespaces/${engine.namespace}/pods`);
      assert.deepEqual(pods.items.map(({ spec }) => spec.nodeName).sort(), NODES);
      assert.deepEqual(
        members.map(({ cluster: { ip } }) => ip).sort(),
        pods.items.map(({ status }) => status.podIP).sort(),
      );
      assert.deepEqual(await engine.names('services'), [`berth-${made.id}`]);
    });

    test('a member has the environment of the documentation', async () => {
      const lines = await containerLogLines(fixture.client, members[1]?.id ?? '');
      const env = Object.fromEntries(lines.map((line) => line.split(/=(.*)/).slice(0, 2))) as Record<
        string,
        string
      >;
      const { ip } = (members[1] as ClusterPod).cluster;
      const expected = {
        NODE_RANK: '1',
        NUM_NODES: '2',
        NUM_TRAINERS: '1',
        WORLD_SIZE: '2',
        NODE_ADDR: ip,
        PRIMARY_ADDR: 'node-0',
        MASTER_ADDR: 'node-0',
        PRIMARY_PORT: '29400',
        MASTER_PORT: '29400',
        HOST_NODE_ADDR: 'node-0:29400',
        BERTH_CLUSTER_ID: made.id,
        BERTH_CLUSTER_ROLE: 'RAY_WORKER',
        HOSTNAME: 'node-1',
      };
      assert.deepEqual(Object.fromEntries(Object.keys(expected).map((name) => [name, env[name]])), expected);
    });

    test('it is whole after the server was killed, and after all were stopped and started', async () => {
      await fixture.killAndRestart();
      assert.deepEqual(
        (await list()).map(({ id, status, startedAt, cluster: member }) => [id, status, startedAt, member]),
        members.map(({ id, status, startedAt, cluster: member }) => [id, status, startedAt, member]),
      );
      for (const { id } of members) assert.equal((await podAction(fixture.client, id, 'stop')).status, 200);
      const stopped = await allAre('EXITED');
      assert.deepEqual(
        stopped.map((member) => member.cluster.ip),
        [undefined, undefined],
      );
      await waitFor('their Service is gone', async () => (await engine.names('services')).length === 0);
      for (const { id } of members) assert.equal((await podAction(fixture.client, id, 'start')).status, 200);
      members = await allAre('RUNNING');
      await summed(2);
    });

    test('a delete leaves nothing behind', async () => {
      assert.equal((await fixture.client.call('DELETE', `/v2/clusters/${made.id}`)).status, 204);
      for (const kind of ['pods', 'secrets', 'services'])
        await waitFor(`no ${kind} are left`, async () => (await engine.names(kind)).length === 0);
    });
  });
});
