import { connect } from '../connect.ts';
import { UsageError } from '../cli.errors.ts';
import { command } from '../command-definition.ts';
import { serverOptions } from '../local-server.ts';
import type { Column } from '../output.ts';
import { parseCount } from '../serverless/deploy-options.ts';
import { endpointArgumentHelp, endpointPath, findEndpoint } from '../serverless/endpoint-client.ts';
import type { EndpointView } from '../serverless/endpoint-client.ts';

export const endpointScale = command({
  name: 'endpoint scale',
  summary: 'Set how many workers an endpoint may have.',
  words: { ENDPOINT: endpointArgumentHelp },
  options: {
    min: { kind: 'text', value: 'N', description: 'How many workers are kept ready.' },
    max: { kind: 'text', value: 'N', description: 'How many workers there may be.' },
    ...serverOptions,
  },
  async run(call) {
    const [min, max] = [parseCount('min', call.options.min, 0), parseCount('max', call.options.max, 0)];
    if (min === undefined && max === undefined) throw new UsageError('give --min, --max or both');
    const client = await connect(call);
    const endpoint = await findEndpoint(client, call.words.ENDPOINT);
    const { id, name, workers } = await client.patch<EndpointView>(endpointPath(endpoint), {
      workers: { ...(min !== undefined && { min }), ...(max !== undefined && { max }) },
    });
    call.output.printRecord({ id, name, min: workers.min, max: workers.max });
  },
});

interface Release {
  version: number | null;
  createdAt: string;
  workerCount: number;
  diff: { field: string }[];
}
interface ReleaseList {
  endpointVersion: number | null;
  rollout: { inProgress: boolean; percentOnLatest: number };
  releases: Release[];
}

const columns: Column<Release>[] = [
  { title: 'VERSION', value: ({ version }) => version },
  { title: 'CREATED', value: ({ createdAt }) => createdAt },
  { title: 'WORKERS', value: ({ workerCount }) => workerCount },
  { title: 'CHANGED', value: ({ diff }) => diff.map(({ field }) => field) },
];

export const endpointReleases = command({
  name: 'endpoint releases',
  summary: 'List the releases of an endpoint, newest first.',
  words: { ENDPOINT: endpointArgumentHelp },
  options: serverOptions,
  async run(call) {
    const client = await connect(call);
    const endpoint = await findEndpoint(client, call.words.ENDPOINT);
    const answer = await client.get<ReleaseList>(endpointPath(endpoint, '/releases'));
    call.output.printTable(answer, answer.releases, columns, `${endpoint.name} has no release yet.`);
  },
});

export const endpointRollback = command({
  name: 'endpoint rollback',
  summary: 'Roll an endpoint back to an earlier release.',
  details: 'Creates a new release with the content of the old one.',
  words: { ENDPOINT: endpointArgumentHelp, VERSION: 'The release; "berth endpoint releases" lists them.' },
  options: serverOptions,
  async run(call) {
    const version = parseCount('VERSION', call.words.VERSION, 0);
    const client = await connect(call);
    const endpoint = await findEndpoint(client, call.words.ENDPOINT);
    const { endpointVersion } = await client.post<{ endpointVersion: number }>(
      endpointPath(endpoint, `/releases/${version}/rollback`),
      {},
    );
    call.output.printRecord({
      id: endpoint.id,
      name: endpoint.name,
      rolledBackTo: version,
      version: endpointVersion,
    });
  },
});
