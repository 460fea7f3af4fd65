import { connect } from '../connect.ts';
import { command } from '../command-definition.ts';
import { CliError } from '../cli.errors.ts';
import { serverOptions } from '../local-server.ts';
import { parseSizeInGb } from '../volumes/volume-client.ts';
import type { VolumeView } from '../volumes/volume-client.ts';

const TYPES = { standard: 'STANDARD', 'high-performance': 'HIGH_PERFORMANCE' } as const;

export const volumeCreate = command({
  name: 'volume create',
  summary: 'Create a network volume.',
  words: { NAME: 'What to call it. Names need not be unique.' },
  options: {
    size: {
      kind: 'text',
      value: 'GB',
      description: 'The size. Default: 10. It can grow later, but not shrink.',
    },
    'data-center': {
      kind: 'text',
      value: 'ID',
      description:
        'The data center of the volume and of everything that mounts it. Needed if there is more than one.',
    },
    type: {
      kind: 'text',
      choices: ['standard', 'high-performance'],
      description: 'The storage tier. Default: the first tier of the data center.',
    },
    ...serverOptions,
  },
  async run(call) {
    const { size, type, 'data-center': wanted } = call.options;
    const client = await connect(call);
    const dataCenter = wanted ?? (await onlyDataCenter(client));
    const made = await client.post<VolumeView>('/v2/network-volumes', {
      name: call.words.NAME,
      size: parseSizeInGb(size ?? '10'),
      dataCenter,
      ...(type === undefined ? {} : { type: TYPES[type] }),
    });
    call.output.printRecord({ ...made });
  },
});

async function onlyDataCenter(client: Awaited<ReturnType<typeof connect>>): Promise<string> {
  const { rows } = await client.list<{ id: string }>('/v2/catalog/datacenters', 'dataCenters');
  const [first] = rows;
  if (first === undefined || rows.length > 1)
    throw new CliError(
      `say where with --data-center: ${rows.map(({ id }) => id).join(', ') || 'there is no data center yet'}`,
    );
  return first.id;
}
