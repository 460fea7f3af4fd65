import { readKubeconfig } from '../../../cloud/src/engines/kubernetes/client/kubeconfig.ts';
import { KubernetesClient } from '../../../cloud/src/engines/kubernetes/client/kubernetes-client.ts';
import { isConflict } from '../../../cloud/src/engines/kubernetes/client/kubernetes.errors.ts';
import type { TestCluster } from './with-kubernetes.ts';

const NAME = 'berth-test-folders';

/**
 * A class whose volumes are folders of this machine, which every node of the test cluster sees. The
 * controller manager makes and deletes them.
 */
export async function hostPathStorageClass({ kubeconfig }: TestCluster): Promise<string> {
  const client = new KubernetesClient(() => readKubeconfig(kubeconfig));
  await client
    .create('/apis/storage.k8s.io/v1/storageclasses', {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: NAME },
      provisioner: 'kubernetes.io/host-path',
      allowVolumeExpansion: true,
    })
    .catch((error: unknown) => {
      if (!isConflict(error)) throw error;
    })
    .finally(() => client.close());
  return NAME;
}
