import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { KubernetesClient } from '../../packages/cloud/src/engines/kubernetes/client/kubernetes-client.ts';
import { readKubeconfig } from '../../packages/cloud/src/engines/kubernetes/client/kubeconfig.ts';
import type {
  ObjectList,
  PodObject,
} from '../../packages/cloud/src/engines/kubernetes/kubernetes-objects.ts';
import type { ApiClient } from '../../packages/testing/src/api-client.ts';
import { createApiClient } from '../../packages/testing/src/api-client.ts';
import { deployHandler } from '../../packages/testing/src/deploy-handler.ts';
import type { TestCluster } from '../../packages/testing/src/kubernetes/with-kubernetes.ts';
import { ROOT_KEY } from '../../packages/testing/src/server-process.ts';
import { startTcpProxy, type TcpProxy } from '../../packages/testing/src/tcp-proxy.ts';
import { createTestDatabase, type TestDatabase } from '../../packages/testing/src/test-database.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';
import { CHART, helm, helmRelease, kubectl, RELEASE } from './helm-release.ts';

const REPLICAS = 3;
const WITHIN_MS = 120_000;

/** Three servers on one PostgreSQL, which is outside the cluster. */
export function chartReplicasSuite(cluster: TestCluster, image: string): void {
  describe('the Helm chart with three replicas', {
    skip: 'reason' in helm && helm.reason,
    timeout: 3 * WITHIN_MS,
  }, () => {
    const namespace = `berth-replicas-${process.pid}`;
    const admin = new KubernetesClient(() => readKubeconfig(cluster.kubeconfig));
    let database: TestDatabase;
    let cable: TcpProxy;
    let endpoint = '';
    const { run, runHelm, explain } = helmRelease(cluster, namespace);
    /** Its servers that are ready, each reached at the address of its pod. */
    const servers = async (): Promise<{ name: string; client: ApiClient }[]> => {
      const { items } = await admin.get<ObjectList<PodObject>>(`/api/v1/namespaces/${namespace}/pods`, {
        labelSelector: 'app.kubernetes.io/name=berth',
      });
      return items
        .filter(({ metadata, status }) => {
          const ready = status?.conditions?.find(({ type }) => type === 'Ready');
          return metadata.deletionTimestamp === undefined && ready?.status === 'True';
        })
        .map(({ metadata, status }) => ({
          name: metadata.name,
          client: createApiClient(`http://${status?.podIP}:8484`, ROOT_KEY),
        }));
    };
    const allServers = (): ReturnType<typeof servers> =>
      waitFor(
        'all servers are ready',
        async () => {
          const ready = await servers();
          return ready.length === REPLICAS && ready;
        },
        WITHIN_MS,
      );
    const leader = async (client: ApiClient): Promise<string | undefined> => {
      const { body } = await client.call<{ servers: { address: string; leading: boolean }[] }>(
        'GET',
        '/v2/system',
      );
      return body.servers.find((server) => server.leading)?.address;
    };
    const runJob = async (client: ApiClient): Promise<void> => {
      const { body, text } = await client.call<{ status: string; output: string }>(
        'POST',
        `/v2/${endpoint}/runsync?wait=90000`,
        { input: 'hello' },
      );
      assert.deepEqual([body.status, body.output], ['COMPLETED', 'HELLO'], `${text}\n${await explain()}`);
    };

    before(async () => {
      database = await createTestDatabase('postgres');
      cable = await startTcpProxy(database.url, cluster.host);
      await admin.create('/api/v1/namespaces', {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name: namespace },
      });
      await runHelm(
        ...['install', RELEASE, CHART, '--wait', `--timeout=${WITHIN_MS / 1000}s`],
        '--set-json',
        'kubernetes.settings={"cpuRequestRatio":0.01,"memoryRequestRatio":0.01}',
        ...[
          `image.repository=${image.split(':')[0]}`,
          `image.tag=${image.split(':')[1]}`,
          `replicas=${REPLICAS}`,
          `database.url=${cable.url.replaceAll(',', '\\,')}`,
          `keys.root=${ROOT_KEY}`,
          'kubernetes.enabled=true',
          'persistence.enabled=false',
          'resources.requests.cpu=10m',
          'resources.requests.memory=16Mi',
        ].flatMap((value) => ['--set', value]),
      );
    });
    after(async () => {
      await admin.delete(`/api/v1/namespaces/${namespace}`);
      for (const kind of ['clusterroles', 'clusterrolebindings']) {
        const path = `/apis/rbac.authorization.k8s.io/v1/${kind}`;
        for (const { metadata } of (await admin.get<ObjectList<PodObject>>(path)).items)
          if (metadata.name.startsWith(namespace)) await admin.delete(`${path}/${metadata.name}`);
      }
      admin.close();
      await cable?.disconnect();
      await database?.drop();
    });

    test('every server runs jobs on pods of the cluster', async () => {
      const all = await allServers();
      const [first] = all;
      assert.ok(first !== undefined);
      endpoint = await deployHandler(
        first.client,
        'upper',
        'export default ({ input }) => input.toUpperCase();',
      );
      for (const { client } of all) await runJob(client);
      const leaders = await Promise.all(all.map(({ client }) => leader(client)));
      assert.equal(new Set(leaders).size, 1);
    });

    test('when the pod of the leader is killed, another server leads, and jobs go on', async () => {
      const all = await allServers();
      const [first] = all;
      assert.ok(first !== undefined);
      const former = await leader(first.client);
      const addresses = new Map<string, string>();
      for (const { name } of all) {
        const pod = await admin.get<PodObject>(`/api/v1/namespaces/${namespace}/pods/${name}`);
        addresses.set(name, pod.status?.podIP ?? '');
      }
      const killed = all.find(({ name }) => former?.includes(addresses.get(name) ?? '-'));
      assert.ok(killed !== undefined, `${former} is none of ${[...addresses.values()].join(', ')}`);
      await admin.delete(`/api/v1/namespaces/${namespace}/pods/${killed.name}`, { gracePeriodSeconds: 0 });
      const others = all.filter((one) => one !== killed);
      for (const { client } of others) await runJob(client);
      await waitFor('another one leads', async () => {
        const now = await leader(others[0]?.client ?? first.client);
        return now !== undefined && now !== former;
      });
      for (const { client } of await allServers()) await runJob(client);
    });

    test('an upgrade restarts one server after the other, and none of the requests fails', async () => {
      let [isOver, answered] = [false, 0];
      const failures: string[] = [];
      // As the Service does: only servers that are ready are asked, and another one where the first is gone.
      const load = (async () => {
        while (!isOver) {
          const tried: string[] = [];
          for (const { client } of (await servers()).slice(0, 2)) {
            const answer = await client
              .call<{ id: string }>('POST', `/v2/${endpoint}/run`, { input: 'x' })
              .catch((error: unknown) => ({ status: 0, text: String(error) }));
            if (answer.status === 200) break;
            tried.push(answer.text);
          }
          if (tried.length > 1) failures.push(...tried);
          else answered += 1;
        }
      })();
      await runHelm(
        ...['upgrade', RELEASE, CHART, '--reuse-values', '--set', 'config.log.level=debug', '--wait'],
        `--timeout=${WITHIN_MS / 1000}s`,
      );
      await run(kubectl, 'rollout', 'status', `statefulset/${RELEASE}`, `--timeout=${WITHIN_MS / 1000}s`);
      isOver = true;
      await load;
      assert.deepEqual(failures, []);
      assert.ok(answered > 0);
      for (const { client } of await allServers()) await runJob(client);
      const [any] = await servers();
      assert.equal((await any?.client.call('DELETE', `/v2/serverless/${endpoint}`))?.status, 204);
    });
  });
}
