import { connect } from '../connect.ts';
import { command } from '../command-definition.ts';
import { serverOptions } from '../local-server.ts';
import type { Column } from '../output.ts';

interface DataCenter {
  id: string;
  engine: string;
  isolation: string | null;
  cpu: { threads: number };
  memory: number;
  gpus: { id: string; total: number; free: number; virtual: boolean }[];
  pods: number;
  workers: number;
}

const columns: Column<DataCenter>[] = [
  { title: 'DATA CENTER', value: ({ id }) => id },
  { title: 'ENGINE', value: ({ engine }) => engine },
  { title: 'ISOLATION', value: ({ isolation }) => isolation },
  { title: 'CPUS', value: ({ cpu }) => cpu.threads },
  { title: 'MEMORY', value: ({ memory }) => `${memory} GB` },
  {
    title: 'FREE GPUS',
    value: ({ gpus }) =>
      gpus.map(({ id, total, free, virtual }) => `${free} of ${total} ${id}${virtual ? ' (virtual)' : ''}`),
  },
  { title: 'PODS', value: ({ pods }) => pods },
  { title: 'WORKERS', value: ({ workers }) => workers },
];

export const system = command({
  name: 'system',
  summary: 'List the data centers of this installation and what runs there.',
  details: '-o json also has the servers, the longest queues, checks and backups. For operators.',
  options: serverOptions,
  async run(call) {
    const client = await connect(call);
    const { answer, rows } = await client.list<DataCenter>('/v2/system', 'dataCenters');
    call.output.printTable(answer, rows, columns, 'There is no data center.');
  },
});
