import { connect } from '../connect.ts';
import { command } from '../command-definition.ts';
import { requireByIdOrName } from '../find-by-id-or-name.ts';
import { serverOptions } from '../local-server.ts';
import type { Column } from '../output.ts';
import { formatHardware } from '../pods/pod-client.ts';
import type { PodView } from '../pods/pod-client.ts';
import { repeatWhileWatched, watchOption } from '../watch.ts';

interface ClusterPod extends PodView {
  cluster?: { rank: number | null; ip?: string };
}

const columns: Column<ClusterPod>[] = [
  { title: 'RANK', value: ({ cluster }) => cluster?.rank },
  { title: 'ID', value: ({ id }) => id },
  { title: 'NAME', value: ({ name }) => name },
  { title: 'STATUS', value: ({ status }) => status },
  { title: 'HARDWARE', value: formatHardware },
  { title: 'ADDRESS', value: ({ cluster }) => cluster?.ip },
  { title: 'DATA CENTER', value: ({ dataCenterId }) => dataCenterId },
  { title: 'DETAIL', value: ({ statusDetail }) => statusDetail },
];

export const clusterPods = command({
  name: 'cluster pods',
  summary: 'List the pods of a cluster by rank.',
  words: { CLUSTER: 'The cluster, by id or name.' },
  options: { ...watchOption, ...serverOptions },
  async run(call) {
    const client = await connect(call);
    const all = await client.listAll<{ id: string; name: string }>('/v2/clusters', 'clusters');
    const words = { noun: 'cluster', listCommand: 'berth cluster ls' };
    const { id, name } = requireByIdOrName(all, call.words.CLUSTER, words);
    await repeatWhileWatched(call, async () => {
      const path = `/v2/clusters/${encodeURIComponent(id)}/pods`;
      const { answer, rows } = await client.list<ClusterPod>(path, 'pods');
      call.output.printTable(answer, rows, columns, `${name} has no pod.`);
    });
  },
});
