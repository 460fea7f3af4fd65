import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { KubernetesClient } from '../packages/cloud/src/engines/kubernetes/client/kubernetes-client.ts';
import { readKubeconfig } from '../packages/cloud/src/engines/kubernetes/client/kubeconfig.ts';
import type { ObjectList, PodObject } from '../packages/cloud/src/engines/kubernetes/kubernetes-objects.ts';
import { readDetails } from '../packages/cloud/src/engines/kubernetes/pod-labels.ts';
import { findClusterPrograms } from '../packages/testing/src/kubernetes/cluster-programs.ts';
import { startKubernetes } from '../packages/testing/src/kubernetes/kubernetes-cluster.ts';
import type { KubernetesEngineFixture } from '../packages/testing/src/kubernetes/kubernetes-engine-fixture.ts';
import { kubernetesEngineFixture } from '../packages/testing/src/kubernetes/kubernetes-engine-fixture.ts';
import type { ServerProcess } from '../packages/testing/src/server-process.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import { createTestDatabase } from '../packages/testing/src/test-database.ts';
import type { BenchContext } from './support/bench-context.ts';
import type { CleanupScope } from './support/cleanup-scope.ts';
import { withCleanup } from './support/cleanup-scope.ts';
import { residentMegabytes } from './support/process-usage.ts';
import { quantile } from './support/statistics.ts';

const FULL = { nodes: 1000, endpoints: 2000, workers: 5000 };
const WOKEN = 100;
const AT_ONCE = 20;
const POLL_MS = 20;
const WITHIN_MS = 420_000;
const IDLE_MS = 20_000;
const BARS = { megabytes: 600, decisionMs: 1000 };
/** Nodes that kwok plays renew their leases every 50 s. */
const NODE_GRACE_SECONDS = 300;

/** A cluster of simulated nodes: what many workers cost Berth, and how soon a job gets a worker among them. */
export async function kubernetesScale(bench: BenchContext): Promise<void> {
  const { report, scale } = bench;
  const size = {
    nodes: Math.ceil(FULL.nodes * scale),
    endpoints: Math.ceil(FULL.endpoints * scale),
    workers: Math.ceil(FULL.workers * scale),
  };
  report.part(
    'kubernetes-scale',
    `${size.workers} workers of ${size.endpoints} endpoints on ${size.nodes} simulated nodes (kwok)`,
  );
  const programs = findClusterPrograms();
  const cluster = await startKubernetes({ nodes: 0, nodeGraceSeconds: NODE_GRACE_SECONDS });
  if ('reason' in cluster || 'reason' in programs)
    return report.print(`not measured: ${'reason' in cluster ? cluster.reason : 'no programs'}`);
  await withCleanup(async (stage) => {
    stage.defer(() => cluster.stop());
    startKwok(stage, join(programs.bin, 'kwok'), cluster.kubeconfig);
    const admin = new KubernetesClient(() => readKubeconfig(cluster.kubeconfig));
    stage.defer(async () => admin.close());
    await createNodes(admin, size.nodes);
    const engine = await kubernetesEngineFixture(cluster);
    stage.defer(() => engine.close());
    const place = await createTestDatabase('sqlite');
    stage.defer(() => place.drop());
    const server = await startServerProcess(place, {
      BERTH_RATE_LIMITS: 'off',
      BERTH_LOG_LEVEL: 'error',
      ...engine.env,
    });
    stage.defer(async () => void (await server.stop()));
    const pid = server.process.pid ?? 0;

    const began = performance.now();
    const sizes = spread(size.workers, size.endpoints);
    await inParallel(sizes.length, (index) => createEndpoint(server, engine, `e${index}`, sizes[index] ?? 0));
    report.print(`endpoints created after ${seconds(began)} s`);
    const running = await waitForWorkers(admin, engine, size.workers);
    report.print(`${running} of ${size.workers} workers run after ${seconds(began)} s`);

    const before = await apiRequests(server);
    await pause(IDLE_MS);
    const atRest = ((await apiRequests(server)) - before) / (IDLE_MS / 1000);
    report.print(
      `requests to the cluster at rest: ${atRest.toFixed(1)} per second; since the start ${before}`,
    );
    const megabytes = residentMegabytes(pid);
    report.bar({
      part: 'kubernetes-scale',
      what: 'resident memory',
      bar: `< ${BARS.megabytes} MB`,
      measured: `${megabytes.toFixed(0)} MB`,
      met: running === size.workers && megabytes < BARS.megabytes,
    });

    const decisions = await wakeEndpoints(server, engine, admin, Math.ceil(WOKEN * Math.min(1, scale * 4)));
    const [p50, p99] = [quantile(decisions, 0.5), quantile(decisions, 0.99)];
    report.print(`from a job to its worker's pod in the cluster: p50 ${p50.toFixed(0)} ms`);
    report.bar({
      part: 'kubernetes-scale',
      what: "from a job to its worker's pod, p99",
      bar: `< ${BARS.decisionMs} ms`,
      measured: `${p99.toFixed(0)} ms`,
      met: p99 < BARS.decisionMs,
    });
  });
}

function startKwok(stage: CleanupScope, command: string, kubeconfig: string): void {
  const kwok = spawn(
    command,
    [
      `--kubeconfig=${kubeconfig}`,
      '--manage-all-nodes=false',
      '--manage-nodes-with-label-selector=type=kwok',
      '--node-lease-duration-seconds=200',
      '--node-ip=127.0.0.1',
    ],
    { stdio: 'ignore' },
  );
  const ended = once(kwok, 'exit');
  stage.defer(async () => {
    kwok.kill('SIGKILL');
    await ended;
  });
}

async function createNodes(admin: KubernetesClient, nodes: number): Promise<void> {
  const resources = { cpu: '64', memory: '512Gi', pods: '110' };
  await inParallel(nodes, async (index) => {
    const name = `simulated-${index}`;
    await admin.create('/api/v1/nodes', {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name, labels: { type: 'kwok', 'kubernetes.io/hostname': name } },
      status: { capacity: resources, allocatable: resources },
    });
  });
}

async function createEndpoint(
  server: ServerProcess,
  { image, dataCenterId }: KubernetesEngineFixture,
  name: string,
  workers: number,
): Promise<string> {
  const { status, body, text } = await server.client().call<{ id: string }>('POST', '/v2/serverless', {
    name,
    type: 'QUEUE',
    image,
    cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
    dataCenterIds: [dataCenterId],
    scaling: { type: 'QUEUE_DELAY', queueDelay: 1 },
    workers: { min: workers, max: Math.max(workers, 1) },
  });
  if (status !== 201) throw new Error(`the endpoint could not be made: ${status} ${text}`);
  return body.id;
}

/** How many workers each endpoint has. */
function spread(workers: number, endpoints: number): number[] {
  return Array.from(
    { length: endpoints },
    (_, index) => Math.floor(((index + 1) * workers) / endpoints) - Math.floor((index * workers) / endpoints),
  );
}

async function waitForWorkers(
  admin: KubernetesClient,
  { namespace }: KubernetesEngineFixture,
  wanted: number,
): Promise<number> {
  const until = performance.now() + WITHIN_MS;
  for (;;) {
    const { items } = await admin.get<ObjectList<PodObject>>(`/api/v1/namespaces/${namespace}/pods`, {
      fieldSelector: 'status.phase=Running',
    });
    if (items.length >= wanted || performance.now() > until) return items.length;
    await pause(2000);
  }
}

/** The milliseconds from each job, one after the other, until the cluster has a pod for its endpoint. */
async function wakeEndpoints(
  server: ServerProcess,
  engine: KubernetesEngineFixture,
  admin: KubernetesClient,
  count: number,
): Promise<number[]> {
  const watch = new AbortController();
  const seen = await watchNewPods(admin, engine.namespace, watch.signal);
  const times: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const id = await createEndpoint(server, engine, `woken${index}`, 0);
    const began = performance.now();
    await server.client().call('POST', `/v2/${id}/run`, { input: {} });
    while (!seen.has(id)) await pause(POLL_MS);
    times.push((seen.get(id) ?? NaN) - began);
  }
  watch.abort();
  return times;
}

/** When the cluster had the first pod of each endpoint. */
async function watchNewPods(
  admin: KubernetesClient,
  namespace: string,
  signal: AbortSignal,
): Promise<Map<string, number>> {
  const path = `/api/v1/namespaces/${namespace}/pods`;
  const { metadata } = await admin.get<{ metadata: { resourceVersion: string } }>(path, { limit: '1' });
  const query = { watch: 'true', resourceVersion: metadata.resourceVersion };
  const events = await admin.stream(path, query, signal);
  const seen = new Map<string, number>();
  const lines = createInterface({ input: events.on('error', () => undefined) });
  lines.on('error', () => undefined);
  lines.on('line', (line) => {
    const { type, object } = JSON.parse(line) as { type: string; object: PodObject };
    const endpoint = type === 'ADDED' ? readDetails(object.metadata)?.labels['endpoint'] : undefined;
    if (endpoint !== undefined && !seen.has(endpoint)) seen.set(endpoint, performance.now());
  });
  return seen;
}

async function apiRequests(server: ServerProcess): Promise<number> {
  const { text } = await server.client().call('GET', '/metrics');
  return Number(/^berth_kubernetes_requests_total\S* (\d+)$/m.exec(text)?.[1]);
}

async function inParallel(count: number, work: (index: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (next < count) await work(next++);
    }),
  );
}

function seconds(since: number): string {
  return ((performance.now() - since) / 1000).toFixed(0);
}
