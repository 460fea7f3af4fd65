import { setTimeout as pause } from 'node:timers/promises';
import type { PodObject } from '../packages/cloud/src/engines/kubernetes/kubernetes-objects.ts';
import {
  KUBERNETES_TEST_IMAGE,
  startKubernetes,
} from '../packages/testing/src/kubernetes/kubernetes-cluster.ts';
import {
  kubernetesEngineFixture,
  type KubernetesEngineFixture,
} from '../packages/testing/src/kubernetes/kubernetes-engine-fixture.ts';
import { createPod } from '../packages/testing/src/pod-client.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import { createTestDatabase } from '../packages/testing/src/test-database.ts';
import type { BenchContext } from './support/bench-context.ts';
import { MILLISECONDS } from './support/bench-report.ts';
import { withCleanup } from './support/cleanup-scope.ts';

const ROUNDS = 12;
const POLL_MS = 10;
const BAR_MS = 300;
const COMMAND = ['sh', '-c', 'sleep 600'];

/** From a request to a running container: a pod of Berth beside a bare Pod that is created by hand. */
export async function kubernetes({ report }: BenchContext): Promise<void> {
  const cluster = await startKubernetes();
  report.part('kubernetes', `${ROUNDS} cold starts each, the image on the node`);
  if ('reason' in cluster) return report.print(`not measured: ${cluster.reason}`);
  await withCleanup(async (scope) => {
    scope.defer(() => cluster.stop());
    const engine = await kubernetesEngineFixture(cluster);
    scope.defer(() => engine.close());
    const place = await createTestDatabase('sqlite');
    scope.defer(() => place.drop());
    const server = await startServerProcess(place, { BERTH_RATE_LIMITS: 'off', ...engine.env });
    scope.defer(async () => void (await server.stop()));
    const client = server.client();
    const times = { bare: [] as number[], berth: [] as number[] };
    for (let round = 0; round <= ROUNDS; round += 1) {
      const bare = await measure(engine, async () => {
        await engine.cluster.create(podsPath(engine), barePod(`bare-${round}`));
      });
      const berth = await measure(engine, async () => {
        const { status, text } = await createPod(client, { image: engine.image, cmd: COMMAND });
        if (status !== 201) throw new Error(text);
      });
      // The first round warms up.
      if (round === 0) continue;
      times.bare.push(bare);
      times.berth.push(berth);
    }
    report.figures('from the request to a running container', MILLISECONDS, [
      { name: 'bare Pod', values: times.bare },
      { name: 'pod of Berth', values: times.berth },
    ]);
    const more = median(times.berth) - median(times.bare);
    report.bar({
      part: 'kubernetes',
      what: 'cold start over a bare Pod',
      bar: `<= ${BAR_MS} ms`,
      measured: `${more.toFixed(0)} ms`,
      met: more <= BAR_MS,
    });
  });
}

/** The time until one more pod runs. */
async function measure(engine: KubernetesEngineFixture, start: () => Promise<void>): Promise<number> {
  const running = async (): Promise<number> =>
    (await engine.cluster.get<{ items: PodObject[] }>(podsPath(engine))).items.filter(
      ({ status }) => status?.phase === 'Running',
    ).length;
  const before = await running();
  const began = performance.now();
  await start();
  while ((await running()) <= before) await pause(POLL_MS);
  return performance.now() - began;
}

function podsPath({ namespace }: KubernetesEngineFixture): string {
  return `/api/v1/namespaces/${namespace}/pods`;
}

function barePod(name: string): unknown {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 0,
      automountServiceAccountToken: false,
      containers: [{ name: 'main', image: KUBERNETES_TEST_IMAGE, command: COMMAND }],
    },
  };
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN;
}
