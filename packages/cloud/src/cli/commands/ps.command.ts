import { connect } from '../connect.ts';
import type { ApiClient } from '../api-client.ts';
import { command } from '../command-definition.ts';
import { serverOptions } from '../local-server.ts';
import type { Column, Output } from '../output.ts';
import {
  endpointArgumentHelp,
  findEndpointForJobs,
  jobPath,
  listEndpoints,
} from '../serverless/endpoint-client.ts';
import type { EndpointView } from '../serverless/endpoint-client.ts';
import { repeatOnEvents, watchEventsOption } from '../watch.ts';
import { formatStartPhases } from '../serverless/start-phases.ts';
import { listWorkers, formatWorkerSummary } from '../serverless/worker-client.ts';
import type { WorkerSummary, WorkerView } from '../serverless/worker-client.ts';

interface JobCounts {
  inQueue: number;
  inProgress: number;
  completed: number;
  failed: number;
  retried: number;
}

interface Row extends Pick<EndpointView, 'id' | 'name' | 'type' | 'image'> {
  workers: WorkerSummary & { min: number; max: number };
  /** Null for a load balancing endpoint, which has no jobs. */
  jobs: JobCounts | null;
}

/** Endpoints that are queried concurrently. */
const CONCURRENCY = 8;

const columns: Column<Row>[] = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'NAME', value: ({ name }) => name },
  { title: 'TYPE', value: ({ type }) => (type === 'QUEUE' ? 'queue' : 'lb') },
  { title: 'IMAGE', value: ({ image }) => image },
  {
    title: 'WORKERS',
    value: ({ workers: { min, max, ...summary } }) => `${formatWorkerSummary(summary)} (${min} to ${max})`,
  },
  { title: 'WAITING', value: ({ jobs }) => jobs?.inQueue },
  { title: 'RUNNING', value: ({ jobs }) => jobs?.inProgress },
  { title: 'DONE', value: ({ jobs }) => jobs?.completed },
  { title: 'FAILED', value: ({ jobs }) => jobs?.failed },
];

export const ps = command({
  name: 'ps',
  summary: 'List the endpoints with their workers and jobs.',
  details:
    'With an endpoint, lists its workers, with how long each phase of their start took: until the ' +
    'image and its Python environment were ready, until the process ran, until the handler was loaded, ' +
    'and until the first job.',
  words: { 'ENDPOINT?': endpointArgumentHelp },
  options: { ...watchEventsOption, ...serverOptions },
  async run(call) {
    const client = await connect(call);
    const { ENDPOINT: name } = call.words;
    if (name === undefined)
      return repeatOnEvents(call, client, eventsPath('endpoint,worker,job'), () =>
        showEndpoints(call.output, client),
      );
    const { id } = await findEndpointForJobs(client, name);
    await repeatOnEvents(call, client, eventsPath('endpoint,worker', id), () =>
      showWorkers(call.output, client, name),
    );
  },
});

export function eventsPath(types: string, endpointId?: string): string {
  const query = new URLSearchParams({ types, ...(endpointId !== undefined && { endpointId }) });
  return `/v2/events?${query}`;
}

async function showEndpoints(output: Output, client: ApiClient): Promise<void> {
  const endpoints = await listEndpoints(client);
  const rows: Row[] = [];
  for (let from = 0; from < endpoints.length; from += CONCURRENCY) {
    rows.push(
      ...(await Promise.all(
        endpoints.slice(from, from + CONCURRENCY).map((endpoint) => rowOf(client, endpoint)),
      )),
    );
  }
  output.printTable(
    { endpoints: rows },
    rows,
    columns,
    'There is no endpoint yet; "berth deploy FOLDER" makes one.',
  );
}

const workerColumns: Column<WorkerView>[] = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'STATUS', value: ({ status, isStale }) => (isStale ? `${status} (stale)` : status) },
  { title: 'SINCE', value: ({ startedAt }) => startedAt },
  { title: 'START', value: ({ phases }) => phases && formatStartPhases(phases) },
  { title: 'GPU', value: formatGpu },
  { title: 'REASON', value: ({ reason }) => reason },
];

function formatGpu({ gpuCount = 0, gpuTypeId, gpuVirtual }: WorkerView): string | undefined {
  if (gpuCount === 0) return undefined;
  return `${gpuCount} x ${gpuTypeId ?? 'GPU'}${gpuVirtual === true ? ' (virtual)' : ''}`;
}

export async function showWorkers(output: Output, client: ApiClient, name: string): Promise<void> {
  const endpoint = await findEndpointForJobs(client, name);
  const { workers, reason } = await listWorkers(client, endpoint);
  output.printTable(
    { workers, reason: reason ?? null },
    workers,
    workerColumns,
    `${endpoint.name} has no worker${reason === undefined || reason === null ? '' : `: ${reason}`}`,
  );
}

async function rowOf(client: ApiClient, endpoint: EndpointView): Promise<Row> {
  const { id, name, type, image, workers } = endpoint;
  const [{ summary }, health] = await Promise.all([
    listWorkers(client, endpoint),
    type === 'QUEUE' ? client.get<{ jobs: JobCounts }>(jobPath(endpoint, 'health')) : { jobs: null },
  ]);
  return {
    id,
    name,
    type,
    image,
    workers: { min: workers.min, max: workers.max, ...summary },
    jobs: health.jobs,
  };
}
