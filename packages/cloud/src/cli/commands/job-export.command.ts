import { command } from '../command-definition.ts';
import { connect } from '../connect.ts';
import { serverOptions } from '../local-server.ts';
import { parseCount } from '../serverless/deploy-options.ts';
import { endpointArgumentHelp, endpointPath, findEndpoint } from '../serverless/endpoint-client.ts';
import { filterFields, filterOptions, searchJobs } from '../serverless/job-search.ts';

export const jobExport = command({
  name: 'job export',
  summary: 'Write jobs with their whole inputs, one JSON line each.',
  details:
    'Each line is {"id", "status", "error", "input"}, newest first. Edit the inputs, and send the jobs again ' +
    'with "berth job redrive ENDPOINT --inputs FILE".',
  words: { ENDPOINT: endpointArgumentHelp },
  options: {
    ...filterOptions,
    limit: { kind: 'text', value: 'N', description: 'How many at most. Default: all.' },
    ...serverOptions,
  },
  async run(call) {
    const limit = parseCount('limit', call.options.limit, 1) ?? Infinity;
    const fields = filterFields(call.options);
    const client = await connect(call);
    const endpoint = await findEndpoint(client, call.words.ENDPOINT);
    for (const { id } of await searchJobs(client, endpoint, fields, limit)) {
      const { status, error, input } = await client.get<Record<string, unknown>>(
        endpointPath(endpoint, `/jobs/${encodeURIComponent(id)}`),
      );
      call.output.printText(`${JSON.stringify({ id, status, error, input })}\n`);
    }
  },
});
