import { connect } from '../connect.ts';
import { command } from '../command-definition.ts';
import { UsageError } from '../cli.errors.ts';
import { serverOptions } from '../local-server.ts';
import { CopyProgress } from '../copy-progress.ts';
import { writeLine } from '../terminal-text.ts';
import { VolumeBucket } from '../volumes/volume-bucket.ts';
import { copyToVolume, copyFromVolume } from '../volumes/volume-copy.ts';
import { findVolume, parseRemotePath } from '../volumes/volume-client.ts';

export const volumeCp = command({
  name: 'volume cp',
  summary: 'Copy files and folders to a network volume, or back.',
  details:
    'One of the two is VOLUME:/path, the other is a local path. If the target ends in a slash or is ' +
    'a folder, files are copied into it. To resume the copy of a large file that was interrupted, ' +
    'run the command again. Write ./ before a local path that contains a colon.',
  words: { FROM: 'A file or a folder of this machine, or VOLUME:/path.', TO: 'The other kind of place.' },
  options: serverOptions,
  async run(call) {
    const { FROM, TO } = call.words;
    const [from, to] = [parseRemotePath(FROM), parseRemotePath(TO)];
    const remote = from ?? to;
    if (remote === undefined || (from !== undefined && to !== undefined))
      throw new UsageError('one of the two places must be VOLUME:/path, and the other one of this machine');
    const client = await connect(call);
    const volume = await findVolume(client, remote.name);
    const bucket = new VolumeBucket(client, volume);
    const progress = new CopyProgress(call.stderr);
    const { skipped } = await (from === undefined
      ? copyToVolume(bucket, FROM, remote.path, progress)
      : copyFromVolume(bucket, from.path, TO, progress)
    ).finally(() => progress.finish());
    if (skipped.length > 0)
      writeLine(
        call.stderr,
        'berth: left out, since it is no file, is a link to a folder, or has a name that is not UTF-8: ' +
          `${skipped.slice(0, 3).join(', ')}${skipped.length > 3 ? ` and ${skipped.length - 3} more` : ''}`,
      );
    call.output.printRecord({ volume: volume.id, ...progress.copied });
  },
});
