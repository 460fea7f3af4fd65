import { test } from 'node:test';
import { KILLED_PARTS, runKillRounds } from '../packages/testing/src/kubernetes/kill-rounds.ts';
import { createTestDatabase } from '../packages/testing/src/test-database.ts';
import { startKubernetes } from '../packages/testing/src/kubernetes/kubernetes-cluster.ts';
import { skipUnlessLong } from '../packages/testing/src/test-tier.ts';

const isLong = skipUnlessLong === undefined;
const cluster = await startKubernetes({ nodes: isLong ? 3 : 2 });

/** With more of everything: `npm run bench -- kubernetes-kills`. */
test('jobs, pods and bills survive kills of servers and of a node, and all else in the long run', {
  skip: 'reason' in cluster && cluster.reason,
  timeout: 600_000,
}, async (context) => {
  if ('reason' in cluster) return;
  const database = await createTestDatabase('postgres');
  context.after(() => database.drop());
  context.after(() => cluster.stop());
  const result = await runKillRounds(cluster, database, {
    workers: isLong ? 3 : 2,
    pods: isLong ? 3 : 1,
    parts: isLong ? KILLED_PARTS : ['server-0', 'node-1'],
    report: (line) => context.diagnostic(line),
  });
  context.diagnostic(JSON.stringify(result));
});
