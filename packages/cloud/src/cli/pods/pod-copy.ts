import { mkdir, readdir, realpath, stat } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { packTree } from '../../support/tar/tar-pack.ts';
import { TarError } from '../../support/tar/tar-read.ts';
import { unpackTar } from '../../support/tar/tar-unpack.ts';
import { ApiError } from '../api-client.ts';
import type { ApiClient } from '../api-client.ts';
import { CliError, unreadable } from '../cli.errors.ts';
import { escapeControlCharacters } from '../output.ts';
import type { CopyProgress } from '../copy-progress.ts';
import type { PodToCopy } from './find-pod-to-copy.ts';

const TAR = 'application/x-tar';

interface PodFile {
  kind: 'file' | 'folder' | 'other';
  size: number;
}

export async function copyIntoPod(
  client: ApiClient,
  pod: PodToCopy,
  source: string,
  target: string,
  progress: CopyProgress,
): Promise<void> {
  const found = await stat(source).catch((cause: NodeJS.ErrnoException) => {
    throw new CliError(unreadable(source, cause, 'file or folder'), { cause });
  });
  const into =
    target === '' || target.endsWith('/') || (await statInPod(client, pod, target))?.kind === 'folder';
  const name = (into ? `${target}/${basename(resolve(source))}` : target)
    .split('/')
    .filter((part) => part !== '')
    .join('/');
  const { files, bytes } = found.isDirectory()
    ? await measureFolder(source)
    : { files: 1, bytes: found.size };
  progress.addTotal(files, bytes);
  // A symbolic link that was named explicitly is followed.
  const tar = packTree(await realpath(source), name, (count) => progress.bytes(count));
  const response = await client.send(
    'PUT',
    filesPath(pod, target.startsWith('/') ? '/' : '.'),
    Readable.from(tar, { objectMode: false }),
    { timeoutMs: 0, headers: { 'content-type': TAR } },
  );
  if (!response.ok) throw await client.errorFrom(response);
  for (let count = 0; count < files; count += 1) progress.addFile();
}

export async function copyOutOfPod(
  client: ApiClient,
  pod: PodToCopy,
  source: string,
  target: string,
  progress: CopyProgress,
): Promise<void> {
  const last = source
    .split('/')
    .filter((part) => part !== '' && part !== '.')
    .at(-1);
  if (last === undefined) throw new CliError('name a file or a folder in the pod: POD:/path');
  const about = await statInPod(client, pod, source);
  if (about === undefined)
    throw new CliError(`there is nothing at ${escapeControlCharacters(source)} in this pod`);
  if (about.kind === 'file') progress.addTotal(1, about.size);
  const response = await client.send('GET', filesPath(pod, source), undefined, { timeoutMs: 0, accept: TAR });
  if (!response.ok) throw await client.errorFrom(response);
  const into =
    target.endsWith('/') ||
    (await stat(target).then(
      (found) => found.isDirectory(),
      () => false,
    ));
  const [folder, name] = into ? [target, last] : [join(resolve(target), '..'), basename(resolve(target))];
  await mkdir(folder, { recursive: true });
  try {
    // All entries are below one, which gets its new name here.
    const rename = (entry: string): string =>
      [
        name,
        ...entry
          .replace(/^(?:\.?\/)+/, '')
          .split('/')
          .slice(1),
      ].join('/');
    await unpackTar(folder, Readable.fromWeb(response.body as Parameters<typeof Readable.fromWeb>[0]), {
      rename,
      onBytes: (count) => progress.bytes(count),
      onFile: () => progress.addFile(),
    });
  } catch (error) {
    if (error instanceof TarError)
      throw new CliError(`the copy is not whole: ${error.message}`, { cause: error });
    throw error;
  }
}

async function statInPod(client: ApiClient, pod: PodToCopy, path: string): Promise<PodFile | undefined> {
  try {
    return await client.get<PodFile>(
      `/v2/pods/${encodeURIComponent(pod.id)}/files/info?path=${encodeURIComponent(path)}`,
    );
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

function filesPath({ id }: PodToCopy, path: string): string {
  return `/v2/pods/${encodeURIComponent(id)}/files?path=${encodeURIComponent(path)}`;
}

async function measureFolder(folder: string): Promise<{ files: number; bytes: number }> {
  const sum = { files: 0, bytes: 0 };
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    sum.files += 1;
    sum.bytes += (await stat(join(entry.parentPath, entry.name))).size;
  }
  return sum;
}
