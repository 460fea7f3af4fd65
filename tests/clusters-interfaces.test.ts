import assert from 'node:assert/strict';
import { afterEach, before, describe, test } from 'node:test';
import { DATABASES } from '../packages/testing/src/test-database.ts';
import {
  podAction,
  createPod,
  waitForPodStatus,
  containerLogLines,
  getPod,
  processesOfInstance,
  SLEEP_COMMAND,
} from '../packages/testing/src/pod-client.ts';
import type { PodView } from '../packages/testing/src/pod-client.ts';
import { listAuditLog, serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';
import { waitFor, waitUntilPasses } from '../packages/testing/src/wait-for.ts';
import { A40, clusterClient, COMPUTE as compute } from './clusters/cluster-client.ts';
import type { ClusterView } from './clusters/cluster-client.ts';
import { clusterRefusalsSuite } from './clusters/cluster-refusals.suite.ts';

const L4 = 'NVIDIA L4';
const ENV = {
  BERTH_RATE_LIMITS: 'off',
  BERTH_GPUS: `6x ${A40},2x ${L4}`,
  BERTH_DATA_CENTERS: 'LOCAL-1,LOCAL-2',
};
const FULL =
  /There are no longer any instances available with the requested specifications\. Please refresh and try again\./;

for (const kind of DATABASES) {
  describe(`clusters, on ${kind}`, () => {
    const fixture = serverFixture(kind, ENV);
    let ann: TestAccount;
    let bob: TestAccount;
    before(async () => {
      ann = await fixture.createAccount('ann');
      bob = await fixture.createAccount('bob');
    });
    afterEach(async () => {
      for (const client of [ann, bob]) {
        for (const { id } of (await client.call<{ clusters: ClusterView[] }>('GET', '/v2/clusters')).body
          .clusters)
          await client.call('DELETE', `/v2/clusters/${id}`);
        for (const { id } of (await client.call<{ pods: PodView[] }>('GET', '/v2/pods')).body.pods)
          await client.call('DELETE', `/v2/pods/${id}`);
      }
    });

    const { bodyOf, create, refused, get, membersOf, allRun, nothingIsLeft } = clusterClient(() => ann);

    test('a life: made, shown, listed, renamed, deleted', async () => {
      const made = await create({ name: 'first', ports: ['22/tcp'], env: { OWN: 'yes' } });
      assert.partialDeepStrictEqual(made, {
        name: 'first',
        type: 'TRAINING',
        compute,
        dataCenterId: 'LOCAL-1',
        pods: { total: 3 },
        primary: { status: 'PROVISIONING' },
      });
      assert.equal(made.template, undefined);
      assert.match(made.network.cidr, /^127\.65\.\d+\.0\/24$/);
      const running = await allRun(made.id);
      const members = await membersOf(made.id);
      assert.deepEqual(
        members.map(({ name, cluster }) => [name, cluster.id, cluster.rank, cluster.role]),
        [0, 1, 2].map((rank) => [`first-node-${rank}`, made.id, rank, undefined]),
      );
      assert.equal(running.primary.podId, members[0]?.id);
      assert.deepEqual(members[0]?.actions, ['stop', 'restart'], 'it goes with its cluster');
      assert.deepEqual(
        (await ann.call<{ clusters: ClusterView[] }>('GET', '/v2/clusters')).body.clusters.map(
          ({ id }) => id,
        ),
        [made.id],
      );

      const renamed = await ann.call<ClusterView>('PATCH', `/v2/clusters/${made.id}`, { name: 'second' });
      assert.deepEqual([renamed.status, renamed.body.name, renamed.body.pods.total], [200, 'second', 3]);
      assert.equal((await ann.call('DELETE', `/v2/clusters/${made.id}`)).status, 204);
      for (const method of ['GET', 'DELETE'])
        assert.equal((await ann.call(method, `/v2/clusters/${made.id}`)).status, 404);
      for (const { id } of members)
        assert.deepEqual(
          [(await ann.call('GET', `/v2/pods/${id}`)).status, processesOfInstance(id)],
          [404, []],
        );
      await nothingIsLeft();
      const actions = (await listAuditLog(ann))
        .filter((entry) => entry['resourceId'] === made.id)
        .map((entry) => entry['action']);
      assert.deepEqual(actions, ['delete', 'update', 'create']);
    });

    test('each member gets its rank and the address of the first one', async () => {
      const { id, network } = await create({
        compute: { ...compute, gpuCountPerPod: 2 },
        env: { NODE_RANK: 'mine', OWN: 'yes' },
        cmd: ['sh', '-c', 'env; echo end; exec sleep 1000'],
      });
      const members = await membersOf(id);
      const base = network.cidr.replace('0/24', '');
      for (const [rank, member] of members.entries()) {
        await waitFor('it has told', async () => (await containerLogLines(ann, member.id)).includes('end'));
        const seen = new Map(
          (await containerLogLines(ann, member.id)).map(
            (line) => line.split(/=(.*)/s, 2) as [string, string],
          ),
        );
        const port = seen.get('PRIMARY_PORT') ?? '';
        const expected = {
          PRIMARY_ADDR: `${base}2`,
          MASTER_ADDR: `${base}2`,
          MASTER_PORT: port,
          HOST_NODE_ADDR: `${base}2:${port}`,
          NODE_ADDR: `${base}${rank + 2}`,
          NODE_RANK: String(rank),
          NUM_NODES: '3',
          NUM_TRAINERS: '2',
          WORLD_SIZE: '6',
          RUNPOD_GPU_COUNT: '2',
          OWN: 'yes',
        };
        for (const [name, value] of Object.entries(expected)) assert.equal(seen.get(name), value, name);
        assert.match(port, /^29\d{3}$/);
        assert.equal(member.cluster.ip, `${base}${rank + 2}`);
      }
    });

    test('a type with roles gives them by rank', async () => {
      for (const [type, first, other] of [
        ['SLURM', 'SLURM_CONTROLLER', 'SLURM_COMPUTE'],
        ['RAY', 'RAY_HEAD', 'RAY_WORKER'],
      ]) {
        const { id } = await create({ type, compute: { ...compute, podCount: 2 } });
        assert.deepEqual(
          (await membersOf(id)).map(({ cluster }) => cluster.role),
          [first, other],
        );
      }
    });

    test('members are changed and deleted only with their cluster, in any interface; other actions work', async () => {
      const { id } = await create({ compute: { ...compute, podCount: 2 } });
      await allRun(id, 2);
      const [member] = await membersOf(id);
      const podId = member?.id ?? '';
      for (const [method, path, body] of [
        ['PATCH', '', { name: 'x' }],
        ['DELETE', '', undefined],
        ['POST', '/action', { action: 'terminate' }],
      ] as const) {
        const answer = await ann.call(method, `/v2/pods/${podId}${path}`, body);
        assert.equal(answer.status, 409, answer.text);
        assert.match(answer.text, new RegExp(`belongs to the cluster ${id}`));
      }
      assert.equal((await ann.call('PATCH', `/v1/pods/${podId}`, { name: 'x' })).status, 400);
      assert.equal((await ann.call('DELETE', `/v1/pods/${podId}`)).status, 400);
      assert.match(
        (await ann.graphql(`mutation { podTerminate(input: { podId: "${podId}" }) }`)).body.errors?.[0]
          ?.message ?? '',
        /belongs to the cluster/,
      );
      assert.match(
        (await ann.graphql(`mutation { podEditJob(input: { podId: "${podId}", imageName: "x" }) { id } }`))
          .body.errors?.[0]?.message ?? '',
        /belongs to the cluster/,
      );
      assert.equal((await getPod(ann, podId)).status, 'RUNNING');
      assert.equal((await podAction(ann, podId, 'restart')).status, 200);
      await waitForPodStatus(ann, podId, 'RUNNING');
      await podAction(ann, podId, 'stop');
      await waitForPodStatus(ann, podId, 'EXITED');
      assert.deepEqual((await get(id)).pods.byStatus, { EXITED: 1, RUNNING: 1 });
      assert.equal((await podAction(ann, podId, 'start')).status, 200);
      await allRun(id, 2);

      const lists = async (query: string): Promise<string[]> =>
        (await ann.call<{ pods: PodView[] }>('GET', `/v2/pods${query}`)).body.pods.map((found) => found.id);
      assert.deepEqual(
        [
          (await lists('')).length,
          (await lists('?includeClusterPods=true')).length,
          (await lists('?includeClusterPods=false')).length,
        ],
        [0, 2, 0],
      );
    });

    test('all or nothing: one that does not fit whole is refused, and nothing of it is there', async () => {
      for (const count of [7, 250]) {
        // A GPU is free again when the last process of its pod has ended.
        await waitUntilPasses(async () => {
          const { status, text } = await refused({ compute: { ...compute, podCount: count } });
          assert.equal(status, 400, text);
          assert.match(text, FULL);
          assert.match(text, /has room for 6 pods/);
        });
      }
      await nothingIsLeft();
      const { body: occupant } = await createPod(ann, { gpu: { id: A40, count: 2 } });
      assert.match(
        (await refused({ compute: { ...compute, gpuCountPerPod: 2 } })).text,
        /has room for 2 pods with 2 NVIDIA A40 each, 3 requested/,
      );
      const { id } = await create({ compute: { ...compute, gpuCountPerPod: 2, podCount: 2 } });
      assert.match((await createPod(ann, { gpu: { id: A40 } })).text, FULL);
      await ann.call('DELETE', `/v2/pods/${occupant.id}`);
      await ann.call('DELETE', `/v2/clusters/${id}`);
      await nothingIsLeft();

      const many = await Promise.all(
        Array.from({ length: 5 }, () => ann.call<ClusterView>('POST', '/v2/clusters', bodyOf())),
      );
      assert.deepEqual(many.map(({ status }) => status).sort(), [201, 201, 400, 400, 400], 'two of them fit');
      const whole = many.filter(({ status }) => status === 201).map(({ body }) => body);
      assert.equal(new Set(whole.map(({ network }) => network.cidr)).size, 2);
      for (const { id: one } of whole) await allRun(one);
    });

    test('a template provides every field and is recorded; volumes and data centers choose the place', async () => {
      const template = (
        await ann.call<{ id: string }>('POST', '/v2/templates', {
          name: `for clusters on ${kind}`,
          image: 'local/shell',
          cmd: ['sh', '-c', 'echo "template $T"; exec sleep 1000'],
          env: { T: 'yes' },
          startSsh: false,
          startJupyter: false,
        })
      ).body.id;
      const made = await create({ image: undefined, cmd: undefined, templateId: template });
      assert.equal(made.template, template);
      const [member] = await membersOf(made.id);
      await waitFor('it runs the template', async () =>
        (await containerLogLines(ann, member?.id ?? '')).includes('template yes'),
      );
      assert.equal((await ann.call('DELETE', `/v2/templates/${template}`)).status, 400, 'in use');
      for (const [field, value] of Object.entries({
        image: 'x',
        args: 'x',
        disk: 5,
        env: {},
        ports: [],
        mounts: {},
      })) {
        const { status, text } = await refused({
          image: undefined,
          cmd: undefined,
          templateId: template,
          [field]: value,
        });
        assert.deepEqual([status, text.includes(field)], [400, true], text);
      }
      assert.equal((await refused({ image: undefined, cmd: undefined, templateId: 'unknown' })).status, 404);
      const serverless = (
        await ann.call<{ id: string }>('POST', '/v2/templates', {
          name: `for endpoints on ${kind}`,
          image: 'local/shell',
          serverless: true,
        })
      ).body.id;
      assert.equal((await refused({ image: undefined, cmd: undefined, templateId: serverless })).status, 422);
      await ann.call('DELETE', `/v2/clusters/${made.id}`);

      const volume = (
        await ann.call<{ id: string }>('POST', '/v2/network-volumes', {
          name: 'shared',
          size: 10,
          dataCenter: 'LOCAL-2',
        })
      ).body.id;
      const mounts = { network: [{ volumeId: volume, path: '/workspace' }] };
      const there = await create({
        mounts,
        cmd: ['sh', '-c', 'echo "$NODE_RANK" >> "$BERTH_ROOT/workspace/ranks"; exec sleep 1000'],
      });
      assert.equal(there.dataCenterId, 'LOCAL-2');
      assert.equal((await refused({ mounts, dataCenterIds: ['LOCAL-1'] })).status, 400);
      assert.equal(
        (await create({ dataCenterIds: ['LOCAL-2'], compute: { ...compute, podCount: 2 } })).dataCenterId,
        'LOCAL-2',
      );
      assert.equal((await ann.call('DELETE', `/v2/network-volumes/${volume}`)).status, 400, 'in use');
    });

    clusterRefusalsSuite(() => ({ ann, bob, clientWith: (key) => fixture.client(key) }));

    test('the same in GraphQL', async () => {
      const fields =
        'id name type podCount gpuCountPerPod gpuTypeId dataCenterId pods { id name clusterId clusterIdx ' +
        'clusterRole clusterIp desiredStatus lastStatusChange imageName machine { podHostId } }';
      type Shown = {
        id: string;
        name: string;
        pods: { id: string; clusterIdx: number; clusterIp: string; clusterRole: string }[];
      };
      const input = {
        clusterName: 'by graphql',
        type: 'RAY',
        gpuTypeId: A40,
        podCount: 2,
        gpuCountPerPod: 1,
        imageName: 'local/shell',
        dockerArgs: JSON.stringify({ entrypoint: [], cmd: SLEEP_COMMAND }),
        deployCost: 1,
        volumeInGb: 10,
        volumeMountPath: '/workspace',
        startSsh: true,
        env: [{ key: 'A', value: '1' }],
        ports: '22/tcp',
      };
      const { body: made } = await ann.graphql<{ createCluster: Shown }>(
        `mutation ($input: CreateClusterInput) { createCluster(input: $input) { ${fields} } }`,
        { input },
      );
      assert.equal(made.errors, undefined, JSON.stringify(made));
      const { id, pods } = made.data?.createCluster ?? { id: '', pods: [] };
      assert.deepEqual(
        pods.map(({ clusterIdx, clusterRole }) => [clusterIdx, clusterRole]),
        [
          [0, 'RAY_HEAD'],
          [1, 'RAY_WORKER'],
        ],
      );
      await allRun(id, 2);
      const { body: seen } = await ann.graphql<{ myself: { clusters: Shown[]; cluster: Shown } }>(
        `{ myself { clusters { id } cluster(input: { id: "${id}" }) { ${fields} } } }`,
      );
      assert.deepEqual(
        [seen.data?.myself.clusters.map((one) => one.id), seen.data?.myself.cluster.pods[1]?.clusterIp],
        [[id], pods[1]?.clusterIp],
      );
      assert.deepEqual(
        (await bob.graphql(`{ myself { cluster(input: { id: "${id}" }) { id } clusters { id } } }`)).body
          .data,
        { myself: { cluster: null, clusters: [] } },
      );
      const remove = `mutation { deleteCluster(input: { id: "${id}" }) }`;
      assert.equal((await bob.graphql(remove)).body.errors?.[0]?.extensions?.code, 'Cluster not found');
      assert.deepEqual((await ann.graphql(remove)).body.data, { deleteCluster: true });
      assert.equal((await ann.graphql(remove)).body.errors?.[0]?.extensions?.code, 'Cluster not found');
      for (const [missing, word] of [
        [{ podCount: 2 }, 'clusterName'],
        [{ clusterName: 'x', gpuTypeId: A40, imageName: 'local/shell' }, 'podCount'],
        [{ clusterName: 'x', gpuTypeId: A40, imageName: 'local/shell', podCount: 1 }, 'podCount'],
        [{ clusterName: 'x', gpuTypeId: A40, podCount: 2 }, 'imageName'],
      ] as const) {
        assert.match(
          (
            await ann.graphql(
              'mutation ($input: CreateClusterInput) { createCluster(input: $input) { id } }',
              { input: missing },
            )
          ).body.errors?.[0]?.message ?? '',
          new RegExp(word),
        );
      }
      await nothingIsLeft();
    });
  });
}
