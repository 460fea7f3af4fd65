import type { ApiClient } from '../api-client.ts';
import { connect } from '../connect.ts';
import { CliError } from '../cli.errors.ts';
import { programName } from '../cli-context.ts';
import { command } from '../command-definition.ts';
import { serverOptions } from '../local-server.ts';
import { podCreateBody, podCreateOptions } from '../pods/pod-create-options.ts';
import { formatHardware, podHttpUrls } from '../pods/pod-client.ts';
import type { PodView } from '../pods/pod-client.ts';
import { parseStartTimeout, podStartOptions, waitUntilPodRuns } from '../pods/wait-for-pod.ts';
import { progressReporter, quietOption } from '../serverless/image-upload.ts';

export const podCreate = command({
  name: 'pod create',
  summary: 'Create a pod that runs an image.',
  details:
    'Waits until the pod runs and reports its progress. Options come before the command, which is passed on unchanged.',
  words: {
    'IMAGE?': 'The image, such as local/shell or ghcr.io/me/jupyter:1. A --template may have one instead.',
    'COMMAND...': "What runs in place of the image's own command.",
  },
  options: {
    check: {
      kind: 'switch',
      description: 'Only say whether it can be created now, where it would run and what it costs.',
    },
    ...podCreateOptions,
    ...podStartOptions,
    // Short options belong to the command that the pod runs.
    quiet: { kind: 'switch', description: quietOption.quiet.description },
    ...serverOptions,
  },
  async run(call) {
    const { words, options, output, stderr } = call;
    const timeout = parseStartTimeout(options.timeout);
    const client = await connect(call);
    const body = await podCreateBody(client, words.IMAGE, words.COMMAND, options);
    if (options.check) return output.printRecord(await checkPod(client, body));
    const created = await client.post<PodView>('/v2/pods', body);
    const say = progressReporter(stderr, options);
    say(`created pod ${created.id}`);
    const pod = options.detach ? created : await waitUntilPodRuns(client, created, timeout, say, call);
    const { id, name, status, image, dataCenterId, cost } = pod;
    const urls = podHttpUrls(client, pod);
    if (!output.isText) return output.printRecord({ ...pod, urls });
    output.printRecord(
      {
        id,
        name,
        status,
        image,
        hardware: formatHardware(pod),
        dataCenterId,
        cost,
        ...(urls.length > 0 && { urls }),
      },
      `Look inside: ${programName(call.env)} exec ${id}`,
    );
  },
});

/** What a creation would answer now; fails where it would. */
async function checkPod(client: ApiClient, body: object): Promise<Record<string, unknown>> {
  const { problem, ...found } = await client.post<{ ok: boolean; problem: { detail: string } | null }>(
    '/v2/pods/check',
    body,
  );
  if (problem !== null) throw new CliError(problem.detail);
  return found;
}
