import { connect } from '../connect.ts';
import { command } from '../command-definition.ts';
import { serverOptions } from '../local-server.ts';
import { podCreateBody, podCreateOptions } from '../pods/pod-create-options.ts';
import { podHttpUrls } from '../pods/pod-client.ts';
import type { PodView } from '../pods/pod-client.ts';
import { parseStartTimeout, podStartOptions, waitUntilPodRuns } from '../pods/wait-for-pod.ts';
import { progressReporter } from '../serverless/image-upload.ts';

export const podCreate = command({
  name: 'pod create',
  summary: 'Create a pod that runs an image.',
  details:
    'Waits until the pod runs and reports its progress. Options come before the command, which is passed on unchanged.',
  words: {
    'IMAGE?': 'The image, such as local/shell or ghcr.io/me/jupyter:1. A --template may have one instead.',
    'COMMAND...': "What runs in place of the image's own command.",
  },
  options: { ...podCreateOptions, ...podStartOptions, ...serverOptions },
  async run(call) {
    const { words, options, output, stderr } = call;
    const timeout = parseStartTimeout(options.timeout);
    const client = await connect(call);
    const created = await client.post<PodView>(
      '/v2/pods',
      await podCreateBody(client, words.IMAGE, words.COMMAND, options),
    );
    const say = progressReporter(stderr, output.isInteractive);
    say(`made pod ${created.id}`);
    const pod = options.detach ? created : await waitUntilPodRuns(client, created, timeout, say);
    const { id, name, status, image, dataCenterId, cost } = pod;
    const urls = podHttpUrls(client, pod);
    if (!output.isText) return output.printRecord({ ...pod, urls });
    output.printRecord(
      { id, name, status, image, dataCenterId, cost, ...(urls.length > 0 && { urls }) },
      `Look inside: berth exec ${id}`,
    );
  },
});
