import { connect } from '../connect.ts';
import { command } from '../command-definition.ts';
import { CliError } from '../cli.errors.ts';
import { serverOptions } from '../local-server.ts';
import { repeatWhileWatched, watchOption } from '../watch.ts';
import type { ApiClient } from '../api-client.ts';
import type { Column } from '../output.ts';
import { escapeControlCharacters } from '../output.ts';
import { formatBytes } from '../../support/byte-size.ts';
import { VolumeBucket } from '../volumes/volume-bucket.ts';
import { findVolume, listVolumes, parseRemotePath } from '../volumes/volume-client.ts';
import type { VolumeView } from '../volumes/volume-client.ts';

const volumeColumns: Column<VolumeView>[] = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'NAME', value: ({ name }) => name },
  { title: 'SIZE', value: ({ size }) => `${size} GB` },
  { title: 'USED', value: ({ used }) => (used === null || used === undefined ? null : formatBytes(used)) },
  { title: 'DATA CENTER', value: ({ dataCenter }) => dataCenter },
  { title: 'TYPE', value: ({ type }) => type },
];

interface Entry {
  path: string;
  kind: 'file' | 'folder';
  size: number | null;
  modifiedAt: string | null;
}

const entryColumns: Column<Entry>[] = [
  { title: 'SIZE', value: ({ size }) => (size === null ? null : formatBytes(size)) },
  { title: 'MODIFIED', value: ({ modifiedAt }) => modifiedAt },
  { title: 'PATH', value: ({ path }) => path },
];

export const volumeLs = command({
  name: 'volume ls',
  summary: 'List the network volumes, or the files in one.',
  words: { 'PLACE?': 'VOLUME:/path for the files of a folder in a volume, named by id or name.' },
  options: {
    recursive: { kind: 'switch', short: 'r', description: 'Also what is in the folders of that folder.' },
    ...watchOption,
    ...serverOptions,
  },
  async run(call) {
    const client = await connect(call);
    const { PLACE: place } = call.words;
    await repeatWhileWatched(call, async () => {
      if (place === undefined) {
        const { answer, rows } = await listVolumes(client);
        return call.output.printTable(
          answer,
          rows,
          volumeColumns,
          'There is no network volume yet; make one with "berth volume create".',
        );
      }
      const files = await listFiles(client, place, call.options.recursive);
      call.output.printTable({ files }, files, entryColumns, 'There is nothing in it.');
    });
  },
});

/** The files at a place, or the one file that it names. */
async function listFiles(client: ApiClient, place: string, recursive: boolean): Promise<Entry[]> {
  const { name, path } = parseRemotePath(place) ?? { name: place, path: '' };
  const bucket = new VolumeBucket(client, await findVolume(client, name));
  const prefix = path === '' || path.endsWith('/') ? path : `${path}/`;
  const files: Entry[] = [];
  for await (const found of bucket.list(prefix, !recursive)) {
    if ('folder' in found) files.push({ path: found.folder, kind: 'folder', size: null, modifiedAt: null });
    else if (found.key !== prefix)
      files.push(
        found.key.endsWith('/')
          ? { path: found.key, kind: 'folder', size: null, modifiedAt: found.modifiedAt }
          : { path: found.key, kind: 'file', size: found.size, modifiedAt: found.modifiedAt },
      );
  }
  if (files.length > 0 || path === '') return files;
  const file = await bucket.head(path.replace(/\/+$/, ''));
  if (file !== undefined)
    return [
      {
        path: file.key,
        kind: 'file',
        size: file.size,
        modifiedAt: new Date(file.modifiedAt).toISOString(),
      },
    ];
  if ((await bucket.head(prefix)) === undefined)
    throw new CliError(`there is nothing at /${escapeControlCharacters(path)} in this volume`);
  return [];
}
