import { connect } from '../connect.ts';
import { command } from '../command-definition.ts';
import { confirm } from '../confirm.ts';
import { serverOptions } from '../local-server.ts';
import { escapeControlCharacters } from '../output.ts';
import { findPod, podPath, podArgumentHelp } from '../pods/pod-client.ts';

export const podRm = command({
  name: 'pod rm',
  summary: 'Remove a pod with its disks; a network volume stays.',
  details: 'It asks first, unless --yes is given.',
  words: { POD: podArgumentHelp },
  options: { yes: { kind: 'switch', short: 'y', description: 'Do not ask.' }, ...serverOptions },
  async run(call) {
    const client = await connect(call);
    const pod = await findPod(client, call.words.POD);
    if (!call.options.yes)
      await confirm(`Remove pod ${escapeControlCharacters(pod.name)} (${pod.id}) with its disks?`, call);
    await client.delete(podPath(pod));
    call.output.printRecord({ id: pod.id, name: pod.name, removed: true });
  },
});
