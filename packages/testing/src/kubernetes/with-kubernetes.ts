import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { startKubernetes } from './kubernetes-cluster.ts';

/** The kubeconfig of the cluster of the whole run, and the address of this machine that its pods reach. */
const KUBECONFIG = 'BERTH_TEST_KUBECONFIG';
const HOST = 'BERTH_TEST_KUBERNETES_HOST';

export interface TestCluster {
  kubeconfig: string;
  host: string;
}

/** Brings an image, as `docker save` writes it, to all nodes. */
export async function importImage({ kubeconfig }: TestCluster, archive: string): Promise<void> {
  const folder = dirname(kubeconfig);
  const nodes = readdirSync(folder).filter((name) => /^node-\d+$/.test(name));
  for (const node of nodes) {
    const socket = join(folder, node, 'run/containerd.sock');
    await promisify(execFile)('ctr', ['-a', socket, '-n', 'k8s.io', 'images', 'import', archive]);
  }
}

/**
 * Runs tests with the cluster of the whole run, or else with one of this file alone. Files with such tests
 * are called `*-kubernetes.test.ts` or `kubernetes-*.integration.test.ts`.
 */
export async function withKubernetes(stories: (cluster: TestCluster) => void): Promise<void> {
  const [kubeconfig, host] = [process.env[KUBECONFIG], process.env[HOST]];
  if (kubeconfig !== undefined && host !== undefined) return stories({ kubeconfig, host });
  const cluster = await startKubernetes();
  if ('reason' in cluster)
    return void test('stories with Kubernetes', { skip: cluster.reason }, () => undefined);
  process.env[KUBECONFIG] = cluster.kubeconfig;
  process.env[HOST] = cluster.host;
  stories(cluster);
  after(() => cluster.stop());
}
