import { connect } from '../client.ts';
import { command } from '../command.ts';
import { Failure, UsageError } from '../failure.ts';
import { serverOptions } from '../local-server.ts';
import { visible } from '../output.ts';
import { endpointPath, endpointWord, findEndpoint } from '../serverless/endpoints.ts';
import type { Input, Writable } from '../surroundings.ts';

export const rm = command({
  name: 'rm',
  summary: 'Remove an endpoint with its workers and jobs.',
  details: 'It asks first, unless --yes is given.',
  words: { ENDPOINT: endpointWord },
  options: { yes: { kind: 'switch', short: 'y', description: 'Do not ask.' }, ...serverOptions },
  async run(call) {
    const client = await connect(call);
    const endpoint = await findEndpoint(client, call.words.ENDPOINT);
    if (!call.options.yes) await confirm(`Remove endpoint ${visible(endpoint.name)} (${endpoint.id}) with its workers and jobs?`, call);
    await client.delete(endpointPath(endpoint));
    call.output.record({ id: endpoint.id, name: endpoint.name, removed: true });
  },
});

async function confirm(question: string, { stdin, stderr, stdout }: { stdin: () => Input; stderr: Writable; stdout: Writable }): Promise<void> {
  if (stdout.isTTY !== true || stdin().isTTY !== true) throw new UsageError('--yes is needed where nobody can be asked');
  stderr.write(`${question} [y/N] `);
  for await (const answer of stdin()) {
    if (/^\s*y(?:es)?\s*$/i.test(Buffer.from(answer).toString('utf8'))) return;
    break;
  }
  throw new Failure('nothing was removed');
}
