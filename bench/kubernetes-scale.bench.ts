import { setTimeout as pause } from 'node:timers/promises';
import { startKubernetes } from '../packages/testing/src/kubernetes/kubernetes-cluster.ts';
import {
  kubernetesEngineFixture,
  type KubernetesEngineFixture,
} from '../packages/testing/src/kubernetes/kubernetes-engine-fixture.ts';
import { ApiCallCount } from './kubernetes/api-call-count.ts';
import { SimulatedWorkers } from './kubernetes/simulated-workers.ts';
import { createSimulatedNodes } from './kubernetes/simulated-nodes.ts';
import type { BenchContext } from './support/bench-context.ts';
import { MILLISECONDS } from './support/bench-report.ts';
import { type BerthProcess, startBerth } from './support/berth-process.ts';
import { withCleanup } from './support/cleanup-scope.ts';
import { cpuSeconds, residentMegabytes } from './support/process-usage.ts';
import { quantile } from './support/statistics.ts';

const FULL = { nodes: 1_000, workers: 5_000, endpoints: 2_000 };
/** Endpoints without a worker, of all; one after the other gets a job. */
const ASLEEP = 0.1;
const CREATE_AT_ONCE = 8;
const REST_SECONDS = 40;
const WAKE_EVERY_MS = 250;
const QUANTILES = [0.5, 0.9, 0.99, 1];
const BARS = { memory: 600, decisionMs: 1_000, callsPerSecond: 200, callsAtRest: 20 };

/**
 * A large cluster whose nodes and containers are simulated by kwok: what it costs to start all workers, to keep
 * them, and how soon an endpoint without a worker gets one.
 */
export async function kubernetesScale(bench: BenchContext): Promise<void> {
  const { report, scale } = bench;
  const size = {
    nodes: Math.max(2, Math.round(FULL.nodes * scale)),
    workers: Math.round(FULL.workers * scale),
    endpoints: Math.round(FULL.endpoints * scale),
  };
  report.part(
    'kubernetes-scale',
    `${size.nodes} nodes, ${size.workers} workers on ${size.endpoints} endpoints, simulated by kwok`,
  );
  const cluster = await startKubernetes({ nodes: 0, simulated: true });
  if ('reason' in cluster) return report.print(`not measured: ${cluster.reason}`);
  await withCleanup(async (scope) => {
    scope.defer(() => cluster.stop());
    const engine = await kubernetesEngineFixture(cluster);
    scope.defer(() => engine.close());
    await createSimulatedNodes(engine.cluster, size.nodes);
    const { url: database } = await bench.database(scope);
    const berth = await startBerth({ data: scope.folder('data'), database, env: engine.env });
    scope.defer(() => berth.stop());
    const workers = new SimulatedWorkers(engine, berth);
    scope.defer(() => workers.stop());
    await measure(bench, { size, engine, berth, workers });
  });
}

interface Setup {
  size: typeof FULL;
  engine: KubernetesEngineFixture;
  berth: BerthProcess;
  workers: SimulatedWorkers;
}

async function measure({ report }: BenchContext, { size, engine, berth, workers }: Setup): Promise<void> {
  const calls = new ApiCallCount(berth);
  const asleep = Math.max(20, Math.round(size.endpoints * ASLEEP));
  const began = performance.now();
  const seconds = (): string => ((performance.now() - began) / 1000).toFixed(0);
  await calls.during(async () => {
    await createEndpoints(berth, size.workers, size.endpoints - asleep);
    report.print(`${seconds()} s: the endpoints with workers are created`);
    while (workers.polling < size.workers) {
      if (performance.now() - began > 1_500_000)
        throw new Error(`${workers.polling} of ${size.workers} workers started within 1500 s`);
      await pause(500);
    }
  });
  report.print(
    `${seconds()} s: ${workers.polling} workers poll; ${calls.text}; ${residentMegabytes(berth.pid).toFixed(0)} MB`,
  );
  const starting = calls.perSecond;
  const sleepers = await createEndpoints(berth, 0, asleep);
  const used = cpuSeconds(berth.pid);
  await calls.during(() => pause(REST_SECONDS * 1_000));
  const rest = calls.perSecond;
  report.print(
    `at rest: ${calls.text}, ${(((cpuSeconds(berth.pid) - used) / REST_SECONDS) * 100).toFixed(0)} % of a core`,
  );
  const wakeUps: WakeUp[] = [];
  await calls.during(async () => {
    const woken = sleepers.map(async (endpointId, index) => {
      await pause(index * WAKE_EVERY_MS);
      wakeUps.push(await wake(berth, engine, workers, endpointId));
    });
    await Promise.all(woken);
  });
  report.print(`while ${asleep} endpoints are woken: ${calls.text}`);
  const memory = residentMegabytes(berth.pid);
  const decisions = wakeUps.map(({ decisionMs }) => decisionMs);
  const podTimes = wakeUps.map(({ podMs }) => podMs);
  report.figures('from the request, at p50, p90, p99 and the longest', MILLISECONDS, [
    {
      name: 'to the decision to start a worker',
      values: QUANTILES.map((share) => quantile(decisions, share)),
    },
    { name: 'to its pod in the API server', values: QUANTILES.map((share) => quantile(podTimes, share)) },
  ]);
  const bar = (what: string, limit: number, measured: number, unit: string): void =>
    report.bar({
      part: 'kubernetes-scale',
      what,
      bar: `< ${limit}${unit}`,
      measured: `${measured.toFixed(0)}${unit}`,
      met: measured < limit,
    });
  bar('memory', BARS.memory, memory, ' MB');
  bar('a woken endpoint: decision, p99', BARS.decisionMs, quantile(decisions, 0.99), ' ms');
  bar('a woken endpoint: pod in the API server, p99', BARS.decisionMs, quantile(podTimes, 0.99), ' ms');
  bar('API calls while all workers start', BARS.callsPerSecond, starting, '/s');
  // Of at most 200 instances the use is asked for every 15 s.
  bar('API calls at rest', BARS.callsAtRest, rest, '/s');
}

/** Their ids. `workers` are shared out evenly; without any, the endpoints have none and may get one. */
async function createEndpoints(
  { url, key }: BerthProcess,
  workers: number,
  count: number,
): Promise<string[]> {
  const ids: string[] = [];
  const create = async (index: number): Promise<void> => {
    const min = Math.floor(((index + 1) * workers) / count) - Math.floor((index * workers) / count);
    const response = await fetch(`${url}/v2/serverless`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        name: `scale-${workers > 0 ? 'busy' : 'asleep'}-${index}`,
        type: 'QUEUE',
        image: 'example.com/simulated:1',
        cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
        scaling: { type: 'REQUEST_COUNT', requestCount: 1 },
        workers: { min, max: Math.max(1, min) },
      }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`an endpoint could not be created: ${text}`);
    ids.push((JSON.parse(text) as { id: string }).id);
  };
  let next = 0;
  const line = async (): Promise<void> => {
    while (next < count) await create(next++);
  };
  await Promise.all(Array.from({ length: CREATE_AT_ONCE }, line));
  return ids;
}

/** Milliseconds from a request. */
interface WakeUp {
  /** Until Berth decided to start a worker, by its own clock. */
  decisionMs: number;
  /** Until its pod was there. */
  podMs: number;
}

async function wake(
  { url, key }: BerthProcess,
  engine: KubernetesEngineFixture,
  workers: SimulatedWorkers,
  endpointId: string,
): Promise<WakeUp> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const created = workers.created(endpointId);
  const [began, beganAt] = [performance.now(), Date.now()];
  const response = await fetch(`${url}/v2/${endpointId}/run`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ input: {} }),
  });
  if (!response.ok) throw new Error(`${engine.namespace}: ${await response.text()}`);
  await response.arrayBuffer();
  const podMs = (await created) - began;
  const list = await fetch(`${url}/v2/serverless/${endpointId}/workers`, { headers });
  const started = ((await list.json()) as { workers: { phases: { scheduledAt: string } }[] }).workers[0];
  if (started === undefined) throw new Error(`${endpointId} has a pod, but no worker`);
  return { decisionMs: Date.parse(started.phases.scheduledAt) - beganAt, podMs };
}
