import { connect } from '../connect.ts';
import { ApiError } from '../api-client.ts';
import type { ApiClient } from '../api-client.ts';
import { command } from '../command-definition.ts';
import { serverOptions } from '../local-server.ts';

/** How the server answers where nothing of a name can be deleted. */
const IN_USE = 400;

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
  details: 'What an endpoint or a template names is kept.',
  words: { NAME: 'The name, as "berth image ls" shows it.' },
  options: serverOptions,
  async run(call) {
    const client = await connect(call);
    call.output.printRecord({ ...(await removeImages(client, call.words.NAME)) });
  },
});

export const imagePrune = command({
  name: 'image prune',
  summary: 'Delete all uploaded folders that nothing uses.',
  details:
    'Container images that Berth pulled and Python environments stay: they go by age ' +
    '(images.keepDays, pythonEnvironments.keepDays).',
  options: serverOptions,
  async run(call) {
    const client = await connect(call);
    const { rows } = await client.list<{ name: string; image: string }>('/v2/images', 'images');
    const all: Removed = { removed: [], kept: [] };
    for (const [name, images] of Map.groupBy(rows, (row) => row.name)) {
      const { removed, kept } = await removeImages(client, name).catch((error: unknown) => {
        if (!(error instanceof ApiError) || error.status !== IN_USE) throw error;
        return { removed: [], kept: images.map(({ image }) => image) };
      });
      all.removed.push(...removed);
      all.kept.push(...kept);
    }
    call.output.printRecord({ ...all });
  },
});
