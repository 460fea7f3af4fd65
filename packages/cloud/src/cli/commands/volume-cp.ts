import { connect } from '../client.ts';
import { command } from '../command.ts';
import { UsageError } from '../failure.ts';
import { serverOptions } from '../local-server.ts';
import { Progress } from '../progress.ts';
import { Bucket } from '../volumes/bucket.ts';
import { copyIn, copyOut } from '../volumes/copy.ts';
import { findVolume, remotePlace } from '../volumes/volumes.ts';

export const volumeCp = command({
  name: 'volume cp',
  summary: 'Copy files and folders to a network volume, or back.',
  details:
    'One of the two places is VOLUME:/path, the other one of this machine. A target that ends in a slash, or is a folder, is copied into. A large file that was broken off goes on where it was when the command is given again. A path of this machine with a colon in it is written with ./ before it.',
  words: { FROM: 'A file or a folder of this machine, or VOLUME:/path.', TO: 'The other kind of place.' },
  options: serverOptions,
  async run(call) {
    const { FROM, TO } = call.words;
    const [from, to] = [remotePlace(FROM), remotePlace(TO)];
    const remote = from ?? to;
    if (remote === undefined || (from !== undefined && to !== undefined))
      throw new UsageError('one of the two places must be VOLUME:/path, and the other one of this machine');
    const client = await connect(call);
    const volume = await findVolume(client, remote.name);
    const bucket = new Bucket(client, volume);
    const progress = new Progress(call.stderr);
    const { leftOut } = await (from === undefined
      ? copyIn(bucket, FROM, remote.path, progress)
      : copyOut(bucket, from.path, TO, progress)
    ).finally(() => progress.end());
    if (leftOut.length > 0)
      call.stderr.write(
        `berth: left out, since it is no file, is a link to a folder, or has a name that is not UTF-8: ${leftOut.slice(0, 3).join(', ')}${leftOut.length > 3 ? ` and ${leftOut.length - 3} more` : ''}\n`,
      );
    call.output.record({ volume: volume.id, ...progress.copied });
  },
});
