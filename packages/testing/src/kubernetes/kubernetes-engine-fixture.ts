import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { KubernetesClient } from '../../../cloud/src/engines/kubernetes/client/kubernetes-client.ts';
import { readKubeconfig } from '../../../cloud/src/engines/kubernetes/client/kubeconfig.ts';
import type { ObjectList, PodObject } from '../../../cloud/src/engines/kubernetes/kubernetes-objects.ts';
import { readDetails } from '../../../cloud/src/engines/kubernetes/pod-labels.ts';
import type { EngineFixture } from '../engine-fixture.ts';
import { KUBERNETES_TEST_IMAGE } from './kubernetes-cluster.ts';
import { BerthServiceAccount } from './service-account.ts';
import type { TestCluster } from './with-kubernetes.ts';

export interface KubernetesEngineFixture extends EngineFixture {
  cluster: KubernetesClient;
  namespace: string;
  /** What is in the namespace of such objects, by name. */
  names(kind: string): Promise<string[]>;
}

/**
 * A data center in a namespace of its own, for a server that listens where pods reach it. The server has the
 * rights of deploy/kubernetes/role.yaml, and no more.
 */
export async function kubernetesEngineFixture(
  { kubeconfig, host }: TestCluster,
  settings: Record<string, unknown> = {},
): Promise<KubernetesEngineFixture> {
  const namespace = `berth-story-${process.pid}`;
  const folder = mkdtempSync(join(tmpdir(), 'berth-story-'));
  const config = join(folder, 'berth.yaml');
  const dataCenter = {
    id: 'K8S-1',
    engine: 'kubernetes',
    namespace,
    // Test machines are small.
    cpuRequestRatio: 0.01,
    memoryRequestRatio: 0.01,
    ...settings,
  };
  // JSON is YAML.
  writeFileSync(config, JSON.stringify({ dataCenters: [{ id: 'LOCAL-1' }, dataCenter] }));
  const cluster = new KubernetesClient(() => readKubeconfig(kubeconfig));
  const account = new BerthServiceAccount(kubeconfig, namespace);
  const restricted = await account.create(folder);
  const pods = async (): Promise<PodObject[]> =>
    (await cluster.get<ObjectList<PodObject>>(`/api/v1/namespaces/${namespace}/pods`)).items;
  return {
    name: 'Kubernetes',
    dataCenterId: 'K8S-1',
    image: KUBERNETES_TEST_IMAGE,
    env: { BERTH_CONFIG: config, BERTH_KUBECONFIG: restricted, BERTH_HOST: host },
    cluster,
    namespace,
    names: async (kind) =>
      (await cluster.get<ObjectList<PodObject>>(`/api/v1/namespaces/${namespace}/${kind}`)).items.map(
        ({ metadata }) => metadata.name,
      ),
    instancesOf: async (endpointId) =>
      new Map(
        (await pods())
          .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
          .flatMap(({ metadata }) => {
            const details = readDetails(metadata);
            return details?.labels['endpoint'] === endpointId ? [[details.id, metadata.uid] as const] : [];
          }),
      ),
    close: async () => {
      await account.close();
      cluster.close();
      rmSync(folder, { recursive: true });
    },
  };
}
