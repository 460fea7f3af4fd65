import { connect } from '../connect.ts';
import type { ApiClient } from '../api-client.ts';
import { command } from '../command-definition.ts';
import type { Command, CommandCall, Options } from '../command-definition.ts';
import { formatBytes } from '../../support/byte-size.ts';
import { serverOptions } from '../local-server.ts';
import type { Column } from '../output.ts';
import { findPod, podArgumentHelp, podPath } from '../pods/pod-client.ts';
import { endpointArgumentHelp, endpointPath, findEndpoint } from '../serverless/endpoint-client.ts';

interface Sampled {
  average: number;
  max: number;
}
interface Hardware {
  cpu: Sampled | null;
  memory: Sampled | null;
  gpu: Sampled | null;
  gpuMemory: Sampled | null;
}
interface EndpointPoint extends Hardware {
  requests: number;
  completed: number;
  failed: number;
  waitTime: { p50: number; p90: number } | null;
  runTime: { p50: number; p90: number } | null;
  queued: Sampled | null;
  workers: { running: number | null; idle: number | null };
  coldStarts: { count: number };
  cost: number;
}
type Timed<T> = T & { at: string };
interface History<T> {
  points: Timed<T>[];
  total: T;
}

const rangeOptions = {
  range: { kind: 'text', value: 'TIME', description: 'How far back: 90m, 6h or 7d. Default: 1h.' },
  step: { kind: 'text', value: 'TIME', description: 'The time between two lines. Default: about 60 lines.' },
} as const satisfies Options;

const rounded = (value: number | null | undefined): string =>
  value === null || value === undefined ? '-' : String(Math.round(value * 100) / 100);
const share = (sampled: Sampled | null): string =>
  sampled === null ? '-' : `${Math.round(sampled.average * 100)} %`;
const duration = (times: { p50: number; p90: number } | null): string =>
  times === null ? '-' : `${times.p50} / ${times.p90} ms`;

const atColumn: Column<{ at: string }> = {
  title: 'FROM',
  value: ({ at }) => at.slice(0, 16).replace('T', ' '),
};
const hardwareColumns: Column<Hardware>[] = [
  { title: 'CPU', value: ({ cpu }) => rounded(cpu?.average) },
  { title: 'MEMORY', value: ({ memory }) => (memory === null ? '-' : formatBytes(memory.average)) },
  { title: 'GPU', value: ({ gpu }) => share(gpu) },
  { title: 'GPU MEMORY', value: ({ gpuMemory }) => share(gpuMemory) },
];
const costColumn: Column<{ cost: number }> = { title: '$', value: ({ cost }) => cost.toFixed(4) };
const podColumns: Column<Timed<Hardware & { cost: number }>>[] = [atColumn, ...hardwareColumns, costColumn];
const workerColumns: Column<Timed<Hardware>>[] = [atColumn, ...hardwareColumns];
const endpointColumns: Column<Timed<EndpointPoint>>[] = [
  atColumn,
  { title: 'REQUESTS', value: ({ requests }) => requests },
  { title: 'DONE', value: ({ completed }) => completed },
  { title: 'FAILED', value: ({ failed }) => failed },
  { title: 'WAITED P50/P90', value: ({ waitTime }) => duration(waitTime) },
  { title: 'RAN P50/P90', value: ({ runTime }) => duration(runTime) },
  { title: 'QUEUE', value: ({ queued }) => rounded(queued?.average) },
  { title: 'BUSY', value: ({ workers }) => rounded(workers.running) },
  { title: 'IDLE', value: ({ workers }) => rounded(workers.idle) },
  { title: 'COLD STARTS', value: ({ coldStarts }) => coldStarts.count },
  ...hardwareColumns,
  costColumn,
];

type MetricsCall<W> = CommandCall<
  W,
  { range: string | undefined; step: string | undefined; data: string | undefined }
>;

/** A line for each step in which something happened, and their sum. */
async function show<T, W>(
  call: MetricsCall<W>,
  client: ApiClient,
  path: string,
  columns: readonly Column<Timed<T>>[],
  wasActive: (point: T) => boolean,
): Promise<void> {
  const { range, step } = call.options;
  const query = new URLSearchParams({
    ...(range !== undefined && { range }),
    ...(step !== undefined && { step }),
  });
  const history = await client.get<History<T>>(`${path}?${query.toString()}`);
  const points = history.points.filter(wasActive);
  const rows = points.length === 0 ? [] : [...points, { ...history.total, at: 'all of it' }];
  call.output.printTable(history, rows, columns, 'Nothing happened in that time.');
}

const wasUsed = ({ cpu, memory, gpu }: Hardware): boolean => cpu !== null || memory !== null || gpu !== null;
const details =
  'Steps in which nothing happened are left out of the table. The last line is about all of them.';

export const endpointMetrics: Command = command({
  name: 'endpoint metrics',
  summary: 'Show what happened on an endpoint, step by step.',
  details,
  words: { ENDPOINT: endpointArgumentHelp },
  options: { ...rangeOptions, ...serverOptions },
  async run(call) {
    const client = await connect(call);
    const path = endpointPath(await findEndpoint(client, call.words.ENDPOINT), '/metrics');
    await show<EndpointPoint, unknown>(
      call,
      client,
      path,
      endpointColumns,
      (point) => point.requests > 0 || point.completed > 0 || point.failed > 0 || wasUsed(point),
    );
  },
});

export const podMetrics: Command = command({
  name: 'pod metrics',
  summary: 'Show what a pod used, step by step.',
  details,
  words: { POD: podArgumentHelp },
  options: { ...rangeOptions, ...serverOptions },
  async run(call) {
    const client = await connect(call);
    const path = podPath(await findPod(client, call.words.POD), '/metrics');
    await show<Hardware & { cost: number }, unknown>(call, client, path, podColumns, wasUsed);
  },
});

export const workerMetrics: Command = command({
  name: 'worker metrics',
  summary: 'Show what a worker used, step by step; it may have ended.',
  details,
  words: { ENDPOINT: endpointArgumentHelp, WORKER: 'The id of the worker.' },
  options: { ...rangeOptions, ...serverOptions },
  async run(call) {
    const client = await connect(call);
    const endpoint = await findEndpoint(client, call.words.ENDPOINT);
    const path = endpointPath(endpoint, `/workers/${encodeURIComponent(call.words.WORKER)}/history`);
    await show<Hardware, unknown>(call, client, path, workerColumns, wasUsed);
  },
});
