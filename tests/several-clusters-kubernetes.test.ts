import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { KubernetesClient } from '../packages/cloud/src/engines/kubernetes/client/kubernetes-client.ts';
import { readKubeconfig } from '../packages/cloud/src/engines/kubernetes/client/kubeconfig.ts';
import type { ObjectList, PodObject } from '../packages/cloud/src/engines/kubernetes/kubernetes-objects.ts';
import { readDetails } from '../packages/cloud/src/engines/kubernetes/pod-labels.ts';
import type { ApiClient } from '../packages/testing/src/api-client.ts';
import { freePort } from '../packages/testing/src/free-port.ts';
import {
  KUBERNETES_TEST_IMAGE,
  type KubernetesForTests,
  startKubernetes,
} from '../packages/testing/src/kubernetes/kubernetes-cluster.ts';
import { BerthServiceAccount } from '../packages/testing/src/kubernetes/service-account.ts';
import { type TestCluster, withKubernetes } from '../packages/testing/src/kubernetes/with-kubernetes.ts';
import { createRunningPod, waitForPodStatus } from '../packages/testing/src/pod-client.ts';
import { type ServerProcess, startServerProcess } from '../packages/testing/src/server-process.ts';
import { createTemporaryFolder } from '../packages/testing/src/temporary-folder.ts';
import { createTestDatabase, type TestDatabase } from '../packages/testing/src/test-database.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';
import { nodeCommand, queueWorkerSource } from '../packages/testing/src/worker-sources.ts';

const NAMESPACE = `berth-clusters-${process.pid}`;
const WHERE = queueWorkerSource('async () => process.env.RUNPOD_DC_ID');

/** One of the data centers, and the cluster behind it. */
class Site {
  readonly id: string;
  readonly #cluster: TestCluster;
  readonly #account: BerthServiceAccount;
  readonly #admin: KubernetesClient;

  constructor(id: string, cluster: TestCluster) {
    this.id = id;
    this.#cluster = cluster;
    this.#account = new BerthServiceAccount(cluster.kubeconfig, NAMESPACE);
    this.#admin = new KubernetesClient(() => readKubeconfig(cluster.kubeconfig));
  }

  /** Its part of the configuration. Its pods reach the server at the address of this machine that they see. */
  async configure(folder: string, port: number): Promise<Record<string, unknown>> {
    return {
      id: this.id,
      engine: 'kubernetes',
      namespace: NAMESPACE,
      kubeconfig: await this.#account.create(folder),
      workerUrl: `http://${this.#cluster.host}:${port}`,
      cpuRequestRatio: 0.01,
      memoryRequestRatio: 0.01,
    };
  }

  /** The instances in its cluster. */
  async instances(): Promise<string[]> {
    const { items } = await this.#admin.get<ObjectList<PodObject>>(`/api/v1/namespaces/${NAMESPACE}/pods`);
    return items
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .flatMap(({ metadata }) => readDetails(metadata)?.id ?? []);
  }

  async close(): Promise<void> {
    await this.#account.close();
    this.#admin.close();
  }
}

await withKubernetes((firstCluster) => {
  describe('two data centers, each a Kubernetes cluster of its own', { timeout: 300_000 }, () => {
    const folders = ['one', 'two'].map((name) => createTemporaryFolder(name, { empty: '' }));
    let secondCluster: KubernetesForTests;
    let sites: [Site, Site];
    let place: TestDatabase;
    let server: ServerProcess;
    let client: ApiClient;
    before(async () => {
      const started = await startKubernetes({ nodes: 1 });
      assert.ok('kubeconfig' in started);
      secondCluster = started;
      sites = [new Site('K8S-1', firstCluster), new Site('K8S-2', secondCluster)];
      const port = await freePort();
      const dataCenters = await Promise.all(
        sites.map((site, index) => site.configure(folders[index]?.path ?? '', port)),
      );
      const config = join(folders[0]?.path ?? '', 'berth.yaml');
      // JSON is YAML.
      writeFileSync(config, JSON.stringify({ dataCenters }));
      place = await createTestDatabase('sqlite');
      server = await startServerProcess(
        place,
        { BERTH_RATE_LIMITS: 'off', BERTH_HOST: '0.0.0.0', BERTH_CONFIG: config },
        ['--port', String(port)],
      );
      client = server.client();
    });
    after(async () => {
      await server?.stop();
      await place?.drop();
      for (const site of sites ?? []) await site.close();
      await secondCluster?.stop();
      for (const folder of folders) folder.remove();
    });

    const createPodAt = async ({ id }: Site): Promise<string> =>
      (await createRunningPod(client, { image: KUBERNETES_TEST_IMAGE, dataCenterIds: [id] })).id;
    const remove = async (path: string): Promise<void> =>
      assert.equal((await client.call('DELETE', path)).status, 204);

    test('jobs run in the cluster of the data center that their endpoint names', async () => {
      for (const { id } of sites) {
        const made = await client.call<{ id: string }>('POST', '/v2/serverless', {
          name: id.toLowerCase(),
          type: 'QUEUE',
          image: KUBERNETES_TEST_IMAGE,
          args: JSON.stringify(nodeCommand(WHERE)),
          cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
          dataCenterIds: [id],
          scaling: { type: 'REQUEST_COUNT', requestCount: 1 },
          workers: { min: 0, max: 1 },
        });
        assert.equal(made.status, 201, made.text);
        const job = await client.call<{ status: string; output: string }>(
          'POST',
          `/v2/${made.body.id}/runsync?wait=90000`,
          { input: {} },
        );
        assert.deepEqual([job.body.status, job.body.output], ['COMPLETED', id], job.text);
        const found = await Promise.all(sites.map((site) => site.instances()));
        assert.deepEqual(
          found.map(({ length }) => length),
          sites.map((site) => (site.id === id ? 1 : 0)),
        );
        await remove(`/v2/serverless/${made.body.id}`);
        await waitFor('its worker is gone', async () =>
          (await Promise.all(sites.map((site) => site.instances()))).every(({ length }) => length === 0),
        );
      }
    });

    test('while the API server of one cluster is away, the other goes on, and nothing is lost', async () => {
      const [here, away] = sites;
      const stays = await createPodAt(away);
      secondCluster.kill('apiserver');
      const made = await createPodAt(here);
      assert.deepEqual(await here.instances(), [made]);
      await remove(`/v2/pods/${made}`);
      await waitFor('it is gone', async () => (await here.instances()).length === 0);
      // A server that starts meanwhile has the pod that it cannot see.
      await server.kill();
      const { port } = new URL(server.url);
      server = await startServerProcess(
        place,
        {
          BERTH_RATE_LIMITS: 'off',
          BERTH_HOST: '0.0.0.0',
          BERTH_CONFIG: join(folders[0]?.path ?? '', 'berth.yaml'),
        },
        ['--port', port],
      );
      client = server.client();
      const again = await createPodAt(here);
      secondCluster.restore('apiserver');
      await waitFor('its API server answers', () => away.instances().catch(() => undefined), 60_000);
      await waitForPodStatus(client, stays, 'RUNNING');
      assert.deepEqual([await here.instances(), await away.instances()], [[again], [stays]]);
      for (const id of [again, stays]) await remove(`/v2/pods/${id}`);
      await waitFor(
        'nothing is left in either',
        async () => (await Promise.all(sites.map((site) => site.instances()))).flat().length === 0,
        60_000,
      );
    });
  });
});
