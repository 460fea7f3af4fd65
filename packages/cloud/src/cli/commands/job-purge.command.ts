import { connect } from '../connect.ts';
import { command } from '../command-definition.ts';
import { confirm } from '../confirm.ts';
import { serverOptions } from '../local-server.ts';
import { escapeControlCharacters } from '../output.ts';
import { endpointArgumentHelp, findEndpointForJobs, jobPath } from '../serverless/endpoint-client.ts';

export const jobPurge = command({
  name: 'job purge',
  summary: 'Remove all jobs of an endpoint that wait.',
  details: 'Running jobs continue. It asks first, unless --yes is given.',
  words: { ENDPOINT: endpointArgumentHelp },
  options: { yes: { kind: 'switch', short: 'y', description: 'Do not ask.' }, ...serverOptions },
  async run(call) {
    const client = await connect(call);
    const endpoint = await findEndpointForJobs(client, call.words.ENDPOINT);
    if (!call.options.yes)
      await confirm(
        `Remove all jobs of ${escapeControlCharacters(endpoint.name)} (${endpoint.id}) that wait?`,
        call,
      );
    const { removed } = await client.post<{ removed: number }>(jobPath(endpoint, 'purge-queue'), undefined);
    call.output.printRecord({ id: endpoint.id, name: endpoint.name, removed });
  },
});
