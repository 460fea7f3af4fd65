import { connect } from '../connect.ts';
import { command } from '../command-definition.ts';
import { UsageError } from '../cli.errors.ts';
import { serverOptions } from '../local-server.ts';
import { copyIntoPod, copyOutOfPod } from '../pods/pod-copy.ts';
import { findPodToCopy } from '../pods/find-pod-to-copy.ts';
import { CopyProgress } from '../copy-progress.ts';
import { parseRemotePath } from '../volumes/volume-client.ts';

export const podCp = command({
  name: 'pod cp',
  summary: 'Copy files and folders into a running pod, or out of it.',
  details:
    'One of the two is POD:/path, the other is a local path. A path of the pod that does not start with ' +
    'a slash is relative to its working folder. If the target ends in a slash or is a folder, files are ' +
    'copied into it. Write ./ before a local path that contains a colon.',
  words: {
    FROM: 'A file or a folder of this machine, or POD:/path; the pod by id or name.',
    TO: 'The other kind of place.',
  },
  options: serverOptions,
  async run(call) {
    const { FROM, TO } = call.words;
    const [from, to] = [parseRemotePath(FROM), parseRemotePath(TO)];
    const remote = from ?? to;
    if (remote === undefined || (from !== undefined && to !== undefined))
      throw new UsageError('one of the two places must be POD:/path, and the other one of this machine');
    const client = await connect(call);
    const pod = await findPodToCopy(client, remote.name);
    const progress = new CopyProgress(call.stderr);
    // The path as it was typed: a leading slash matters here.
    const path = (from === undefined ? TO : FROM).slice(remote.name.length + 1);
    await (from === undefined
      ? copyIntoPod(client, pod, FROM, path, progress)
      : copyOutOfPod(client, pod, path, TO, progress)
    ).finally(() => progress.finish());
    call.output.printRecord({ pod: pod.id, ...progress.copied });
  },
});
