import { connect } from '../client.ts';
import { command } from '../command.ts';
import { confirm } from '../confirm.ts';
import { serverOptions } from '../local-server.ts';
import { visible } from '../output.ts';
import { endpointPath, endpointWord, findEndpoint } from '../serverless/endpoints.ts';

export const rm = command({
  name: 'rm',
  summary: 'Remove an endpoint with its workers and jobs.',
  details: 'It asks first, unless --yes is given.',
  words: { ENDPOINT: endpointWord },
  options: { yes: { kind: 'switch', short: 'y', description: 'Do not ask.' }, ...serverOptions },
  async run(call) {
    const client = await connect(call);
    const endpoint = await findEndpoint(client, call.words.ENDPOINT);
    if (!call.options.yes)
      await confirm(
        `Remove endpoint ${visible(endpoint.name)} (${endpoint.id}) with its workers and jobs?`,
        call,
      );
    await client.delete(endpointPath(endpoint));
    call.output.record({ id: endpoint.id, name: endpoint.name, removed: true });
  },
});
