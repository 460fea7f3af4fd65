import { test } from 'node:test';
import { runKillRounds } from '../packages/testing/src/kubernetes/kill-rounds.ts';
import { startKubernetes } from '../packages/testing/src/kubernetes/kubernetes-cluster.ts';

const cluster = await startKubernetes({ nodes: 3 });

/** With more of everything: `npm run bench -- kubernetes`. */
test('jobs, pods and bills survive kills of the server, the API server, etcd and a node', {
  skip: 'reason' in cluster && cluster.reason,
  timeout: 300_000,
}, async (context) => {
  if ('reason' in cluster) return;
  context.after(() => cluster.stop());
  const result = await runKillRounds(cluster, {
    workers: 3,
    pods: 3,
    report: (line) => context.diagnostic(line),
  });
  context.diagnostic(JSON.stringify(result));
});
