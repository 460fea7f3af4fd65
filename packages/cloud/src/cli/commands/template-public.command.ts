import { connect } from '../connect.ts';
import { command } from '../command-definition.ts';
import { serverOptions } from '../local-server.ts';
import type { Column } from '../output.ts';

interface Template {
  id: string;
  name: string;
  image: string;
}

const SOURCES = ['official', 'verified', 'community'] as const;
const columns: Column<Template>[] = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'NAME', value: ({ name }) => name },
  { title: 'IMAGE', value: ({ image }) => image },
];

export const templatePublic = command({
  name: 'template public',
  summary: 'List the public templates.',
  options: {
    source: {
      kind: 'text',
      choices: SOURCES,
      description: 'Those that come with Berth, or those that accounts made public. Default: official.',
    },
    ...serverOptions,
  },
  async run(call) {
    const client = await connect(call);
    const path = `/v2/catalog/templates?source=${call.options.source ?? 'official'}`;
    const { answer, rows } = await client.list<Template>(path, 'templates');
    call.output.printTable(answer, rows, columns, 'There is no public template.');
  },
});
