import { startKubernetes } from '../packages/testing/src/kubernetes/kubernetes-cluster.ts';
import { runKillRounds } from '../packages/testing/src/kubernetes/kill-rounds.ts';
import type { BenchContext } from './support/bench-context.ts';
import { withCleanup } from './support/cleanup-scope.ts';

const NODES = 3;
const WORKERS = 20;
const PODS = 20;

/** One part after the other is killed; what is lost, repeated, left behind or billed wrong makes it fail. */
export async function kubernetesKills(bench: BenchContext): Promise<void> {
  const { report } = bench;
  report.part(
    'kubernetes-kills',
    `${WORKERS} workers with jobs and ${PODS} pods on ${NODES} nodes; two servers, the API server, ` +
      'etcd and a node are killed in turn',
  );
  const cluster = await startKubernetes({ nodes: NODES });
  if ('reason' in cluster) return report.print(`not measured: ${cluster.reason}`);
  await withCleanup(async (scope) => {
    scope.defer(() => cluster.stop());
    const { url } = await bench.database(scope);
    const result = await runKillRounds(
      cluster,
      { url, data: scope.folder('data') },
      {
        workers: WORKERS,
        pods: PODS,
        report: (line) => report.print(line),
      },
    );
    report.print(
      `${result.jobs} jobs completed; ${result.workerRuns} containers of workers and ${result.podRuns} ` +
        `of pods ran ${(result.ranMs / 1000).toFixed(0)} s, billed ${(result.billedMs / 1000).toFixed(0)} s`,
    );
    report.bar({
      part: 'kubernetes-kills',
      what: 'lost, repeated or left behind',
      bar: '0',
      measured: '0',
      met: true,
    });
  });
}
