import { KUBERNETES_BERTH_IMAGE } from '../../packages/testing/src/kubernetes/kubernetes-cluster.ts';
import { withKubernetes } from '../../packages/testing/src/kubernetes/with-kubernetes.ts';
import { installedChartSuite } from './chart-installed.suite.ts';
import { chartReplicasSuite } from './chart-replicas.suite.ts';

await withKubernetes((cluster) => {
  installedChartSuite(cluster, async () => KUBERNETES_BERTH_IMAGE);
  chartReplicasSuite(cluster, KUBERNETES_BERTH_IMAGE);
});
