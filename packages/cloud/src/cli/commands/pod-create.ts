import { connect } from '../client.ts';
import { command } from '../command.ts';
import { serverOptions } from '../local-server.ts';
import { podOrder, podOrderOptions } from '../pods/order.ts';
import { httpUrls } from '../pods/pods.ts';
import type { PodView } from '../pods/pods.ts';
import { readTimeout, startingOptions, waitUntilRunning } from '../pods/starting.ts';
import { sayOn } from '../serverless/upload.ts';

export const podCreate = command({
  name: 'pod create',
  summary: 'Rent a machine that runs an image.',
  details:
    'It waits until the pod runs, and says how far it is meanwhile. Options come before the command, which is taken as it stands.',
  words: {
    'IMAGE?': 'The image, such as local/shell or ghcr.io/me/jupyter:1. A --template may have one instead.',
    'COMMAND...': "What runs in place of the image's own command.",
  },
  options: { ...podOrderOptions, ...startingOptions, ...serverOptions },
  async run(call) {
    const { words, options, output, stderr } = call;
    const timeout = readTimeout(options.timeout);
    const client = await connect(call);
    const created = await client.post<PodView>(
      '/v2/pods',
      await podOrder(client, words.IMAGE, words.COMMAND, options),
    );
    const say = sayOn(stderr, output.forPeople);
    say(`made pod ${created.id}`);
    const pod = options.detach ? created : await waitUntilRunning(client, created, timeout, say);
    const { id, name, status, image, dataCenterId, cost } = pod;
    const urls = httpUrls(client, pod);
    if (!output.forPeople) return output.record({ ...pod, urls });
    output.record(
      { id, name, status, image, dataCenterId, cost, ...(urls.length > 0 && { urls }) },
      `Look inside: berth exec ${id}`,
    );
  },
});
