import { connect } from '../connect.ts';
import { command } from '../command-definition.ts';
import type { Command } from '../command-definition.ts';
import { confirm } from '../confirm.ts';
import { serverOptions } from '../local-server.ts';
import { escapeControlCharacters } from '../output.ts';
import { endpointPath, endpointArgumentHelp, findEndpoint } from '../serverless/endpoint-client.ts';

export const rm = remover('rm');
export const endpointRm = remover('endpoint rm');

function remover(name: string): Command {
  return command({
    name,
    summary: 'Remove an endpoint with its workers and jobs.',
    details: 'It asks first, unless --yes is given.',
    words: { ENDPOINT: endpointArgumentHelp },
    options: { yes: { kind: 'switch', short: 'y', description: 'Do not ask.' }, ...serverOptions },
    async run(call) {
      const client = await connect(call);
      const endpoint = await findEndpoint(client, call.words.ENDPOINT);
      if (!call.options.yes)
        await confirm(
          `Remove endpoint ${escapeControlCharacters(endpoint.name)} (${endpoint.id}) with its workers and jobs?`,
          call,
        );
      await client.delete(endpointPath(endpoint));
      call.output.printRecord({ id: endpoint.id, name: endpoint.name, removed: true });
    },
  });
}
