import { connect } from '../connect.ts';
import { command } from '../command-definition.ts';
import { serverOptions } from '../local-server.ts';
import { findPod, podPath, podArgumentHelp } from '../pods/pod-client.ts';
import type { PodView } from '../pods/pod-client.ts';
import { parseStartTimeout, podStartOptions, waitUntilPodRuns } from '../pods/wait-for-pod.ts';
import { progressReporter, quietOption } from '../serverless/image-upload.ts';

const words = { POD: podArgumentHelp };

function starter(action: 'start' | 'restart', summary: string, details: string) {
  return command({
    name: `pod ${action}`,
    summary,
    details,
    words,
    options: { ...podStartOptions, ...quietOption, ...serverOptions },
    async run(call) {
      const { options, output, stderr } = call;
      const timeout = parseStartTimeout(options.timeout);
      const client = await connect(call);
      const requested = await client.post<PodView>(
        podPath(await findPod(client, call.words.POD), '/action'),
        {
          action,
        },
      );
      const { id, name, status } = options.detach
        ? requested
        : await waitUntilPodRuns(client, requested, timeout, progressReporter(stderr, options), call);
      output.printRecord({ id, name, status });
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
    call.output.printRecord({ id, name, status });
  },
});
