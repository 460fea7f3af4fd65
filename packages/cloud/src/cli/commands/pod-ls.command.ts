import { connect } from '../connect.ts';
import { command } from '../command-definition.ts';
import { serverOptions } from '../local-server.ts';
import { repeatWhileWatched, watchOption } from '../watch.ts';
import type { Column } from '../output.ts';
import { podHttpUrls, listPods, formatHardware } from '../pods/pod-client.ts';
import type { PodView } from '../pods/pod-client.ts';

interface Row extends PodView {
  urls: string[];
}

const columns: Column<Row>[] = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'NAME', value: ({ name }) => name },
  { title: 'STATUS', value: ({ status }) => status },
  { title: 'IMAGE', value: ({ image }) => image },
  { title: 'HARDWARE', value: formatHardware },
  { title: 'CPU', value: ({ runtime }) => runtime && `${runtime.cpu.util} %` },
  { title: 'MEMORY', value: ({ runtime }) => runtime && `${runtime.memory.util} %` },
  { title: 'PORTS', value: ({ ports }) => ports },
  { title: 'SSH', value: ({ ssh }) => ssh.direct?.command },
  { title: '$/HOUR', value: ({ cost }) => cost },
];

export const podLs = command({
  name: 'pod ls',
  summary: 'List the pods.',
  options: { ...watchOption, ...serverOptions },
  async run(call) {
    const client = await connect(call);
    await repeatWhileWatched(call, async () => {
      const pods = (await listPods(client)).map((pod): Row => ({ ...pod, urls: podHttpUrls(client, pod) }));
      call.output.printTable(
        { pods },
        pods,
        columns,
        'There is no pod yet; "berth pod create IMAGE" makes one.',
      );
    });
  },
});
