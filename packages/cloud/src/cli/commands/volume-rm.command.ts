import { connect } from '../connect.ts';
import { command } from '../command-definition.ts';
import { confirm } from '../confirm.ts';
import { CliError } from '../cli.errors.ts';
import { serverOptions } from '../local-server.ts';
import { escapeControlCharacters } from '../output.ts';
import { VolumeBucket } from '../volumes/volume-bucket.ts';
import { forEachConcurrent } from '../volumes/transfer-retry.ts';
import { findVolume, parseRemotePath, volumePath } from '../volumes/volume-client.ts';

const CONCURRENCY = 8;

export const volumeRm = command({
  name: 'volume rm',
  summary: 'Remove a network volume with its data, or files in it.',
  details: 'It asks first, unless --yes is given. A volume that a pod or an endpoint uses cannot be removed.',
  words: { PLACE: 'The volume, by id or name, or VOLUME:/path for a file or a folder in it.' },
  options: { yes: { kind: 'switch', short: 'y', description: 'Do not ask.' }, ...serverOptions },
  async run(call) {
    const client = await connect(call);
    const place = parseRemotePath(call.words.PLACE);
    const volume = await findVolume(client, place?.name ?? call.words.PLACE);
    const shown = `${escapeControlCharacters(volume.name)} (${volume.id})`;
    if (place === undefined || place.path === '') {
      if (place !== undefined)
        throw new CliError(
          `to remove the volume itself, name it without a colon: berth volume rm ${volume.id}`,
        );
      if (!call.options.yes) await confirm(`Remove network volume ${shown} with all its data?`, call);
      await client.delete(volumePath(volume));
      return call.output.printRecord({ id: volume.id, name: volume.name, removed: true });
    }
    const bucket = new VolumeBucket(client, volume);
    const path = place.path.replace(/\/+$/, '');
    const isFile = !place.path.endsWith('/') && (await bucket.head(path)) !== undefined;
    if (!isFile && (await bucket.head(`${path}/`)) === undefined)
      throw new CliError(`there is nothing at /${escapeControlCharacters(path)} in this volume`);
    if (!call.options.yes)
      await confirm(
        `Remove ${isFile ? 'the file' : 'the folder with all in it:'} ` +
          `/${escapeControlCharacters(path)} of network volume ${shown}?`,
        call,
      );
    const removed = isFile ? await removeAll(bucket, [path]) : await removeFolder(bucket, path);
    call.output.printRecord({ volume: volume.id, path, files: removed });
  },
});

/** Deletes files first, then the empty folders, deepest first. */
async function removeFolder(bucket: VolumeBucket, path: string): Promise<number> {
  const found: string[] = [];
  for await (const entry of bucket.list(`${path}/`)) if ('key' in entry) found.push(entry.key);
  const files = found.filter((key) => !key.endsWith('/'));
  await removeAll(bucket, files);
  const folders = new Set<string>();
  for (const key of [...found, `${path}/`]) {
    for (let end = key.lastIndexOf('/'); end >= path.length; end = key.lastIndexOf('/', end - 1))
      folders.add(key.slice(0, end + 1));
  }
  for (const folder of [...folders].sort((one, other) => other.length - one.length))
    await bucket.delete(folder);
  return files.length;
}

async function removeAll(bucket: VolumeBucket, keys: readonly string[]): Promise<number> {
  await forEachConcurrent(keys, CONCURRENCY, (key) => bucket.delete(key));
  return keys.length;
}
