import { connect } from '../client.ts';
import { command } from '../command.ts';
import { confirm } from '../confirm.ts';
import { serverOptions } from '../local-server.ts';
import { visible } from '../output.ts';
import { findPod, podPath, podWord } from '../pods/pods.ts';

export const podRm = command({
  name: 'pod rm',
  summary: 'Remove a pod with its disks; a network volume stays.',
  details: 'It asks first, unless --yes is given.',
  words: { POD: podWord },
  options: { yes: { kind: 'switch', short: 'y', description: 'Do not ask.' }, ...serverOptions },
  async run(call) {
    const client = await connect(call);
    const pod = await findPod(client, call.words.POD);
    if (!call.options.yes) await confirm(`Remove pod ${visible(pod.name)} (${pod.id}) with its disks?`, call);
    await client.delete(podPath(pod));
    call.output.record({ id: pod.id, name: pod.name, removed: true });
  },
});
