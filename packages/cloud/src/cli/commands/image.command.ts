import { connect } from '../connect.ts';
import type { ApiClient } from '../api-client.ts';
import { command } from '../command-definition.ts';
import { serverOptions } from '../local-server.ts';
import { parseCount } from '../serverless/deploy-options.ts';

interface Removed {
  removed: string[];
  kept: string[];
}

function removeImages(client: ApiClient, name: string): Promise<Removed> {
  return client.deleteForAnswer<Removed>(`/v2/images/${encodeURIComponent(name)}`);
}

export const imageRm = command({
  name: 'image rm',
  summary: 'Delete the uploaded folders of a name that nothing uses.',
  details: 'Images that an endpoint or a template uses are kept.',
  words: { NAME: 'The name, as "berth image ls" shows it.' },
  options: serverOptions,
  async run(call) {
    const client = await connect(call);
    call.output.printRecord({ ...(await removeImages(client, call.words.NAME)) });
  },
});

export const imagePrune = command({
  name: 'image prune',
  summary: 'Delete all images that nothing uses.',
  details:
    'Uploaded folders that no endpoint, none of its last ten releases, no template and no pod names. With ' +
    'an operator key also the container images that Berth pulled and the Python environments that it made.',
  options: {
    ...serverOptions,
    'unused-days': {
      kind: 'text',
      value: 'DAYS',
      description: 'Only images that were not uploaded or used for this many days. Default: 0.',
    },
  },
  async run(call) {
    const unusedDays = parseCount('unused-days', call.options['unused-days'], 0) ?? 0;
    const client = await connect(call);
    call.output.printRecord({
      ...(await client.post<Removed>(`/v2/images/prune?unusedDays=${unusedDays}`, undefined)),
    });
  },
});
