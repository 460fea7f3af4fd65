import { test } from 'node:test';
import { runKillRounds } from '../packages/testing/src/kubernetes/kill-rounds.ts';
import { createTestDatabase } from '../packages/testing/src/test-database.ts';
import { startKubernetes } from '../packages/testing/src/kubernetes/kubernetes-cluster.ts';

const cluster = await startKubernetes({ nodes: 3 });

/** With more of everything: `npm run bench -- kubernetes`. */
test('jobs, pods and bills survive kills of each server, of the API server, etcd and of a node', {
  skip: 'reason' in cluster && cluster.reason,
  timeout: 300_000,
}, async (context) => {
  if ('reason' in cluster) return;
  const database = await createTestDatabase('postgres');
  context.after(() => database.drop());
  context.after(() => cluster.stop());
  const result = await runKillRounds(cluster, database, {
    workers: 3,
    pods: 3,
    report: (line) => context.diagnostic(line),
  });
  context.diagnostic(JSON.stringify(result));
});
