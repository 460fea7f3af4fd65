import { deployedFolderStories } from '../packages/testing/src/deployed-folder-stories.ts';
import { KUBERNETES_TEST_IMAGE } from '../packages/testing/src/kubernetes/kubernetes-cluster.ts';
import { kubernetesEngineFixture } from '../packages/testing/src/kubernetes/kubernetes-engine-fixture.ts';
import { withKubernetes } from '../packages/testing/src/kubernetes/with-kubernetes.ts';

await withKubernetes((cluster) =>
  deployedFolderStories(
    'Kubernetes',
    () => kubernetesEngineFixture(cluster),
    () => KUBERNETES_TEST_IMAGE,
  ),
);
