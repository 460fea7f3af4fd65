import { connect } from '../client.ts';
import { command } from '../command.ts';
import { serverOptions } from '../local-server.ts';
import { findPod, podPath, podWord } from '../pods/pods.ts';
import type { PodView } from '../pods/pods.ts';
import { readTimeout, startingOptions, waitUntilRunning } from '../pods/starting.ts';
import { sayOn } from '../serverless/upload.ts';

const words = { POD: podWord };

function starter(action: 'start' | 'restart', summary: string, details: string) {
  return command({
    name: `pod ${action}`,
    summary,
    details,
    words,
    options: { ...startingOptions, ...serverOptions },
    async run(call) {
      const { options, output, stderr } = call;
      const timeout = readTimeout(options.timeout);
      const client = await connect(call);
      const asked = await client.post<PodView>(podPath(await findPod(client, call.words.POD), '/action'), {
        action,
      });
      const { id, name, status } = options.detach
        ? asked
        : await waitUntilRunning(client, asked, timeout, sayOn(stderr, output.forPeople));
      output.record({ id, name, status });
    },
  });
}

export const podStart = starter(
  'start',
  'Start a pod that was stopped.',
  'Its volume is as it was; its container disk is empty.',
);
export const podRestart = starter(
  'restart',
  'Restart a pod.',
  'Its volume stays; its container disk is emptied.',
);

export const podStop = command({
  name: 'pod stop',
  summary: 'Stop a pod; its volume stays, its container disk does not.',
  words,
  options: serverOptions,
  async run(call) {
    const client = await connect(call);
    const { id, name, status } = await client.post<PodView>(
      podPath(await findPod(client, call.words.POD), '/action'),
      { action: 'stop' },
    );
    call.output.record({ id, name, status });
  },
});
