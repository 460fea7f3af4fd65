import { lstat, mkdir, stat } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { readEntryNames } from '../../support/entry-names.ts';
import { CliError, unreadable } from '../cli.errors.ts';
import { escapeControlCharacters } from '../output.ts';
import type { CopyProgress } from '../copy-progress.ts';
import type { VolumeBucket, RemoteFile } from './volume-bucket.ts';
import { downloadFile } from './file-download.ts';
import { forEachConcurrent } from './transfer-retry.ts';
import { uploadFile } from './file-upload.ts';

const CONCURRENCY = 4;

export interface CopyResult {
  /** Skipped entries: not a file, a link to a folder, or a name that is not valid text. */
  skipped: string[];
}

/**
 * Copies from this machine into a volume. A target that ends in a slash or is a folder is copied into;
 * otherwise it becomes the copy.
 */
export async function copyToVolume(
  bucket: VolumeBucket,
  source: string,
  target: string,
  progress: CopyProgress,
): Promise<CopyResult> {
  const found = await stat(source).catch((cause: NodeJS.ErrnoException) => {
    throw new CliError(unreadable(source, cause, 'file or folder'), { cause });
  });
  const into = target === '' || target.endsWith('/') || (await bucket.head(`${target}/`)) !== undefined;
  const name = basename(resolve(source));
  const key = into ? `${target.replace(/\/+$/, '')}/${name}`.replace(/^\//, '') : target;
  if (found.isFile()) {
    progress.addTotal(1, found.size);
    await uploadFile(bucket, source, found.size, key, progress);
    progress.addFile();
    return { skipped: [] };
  }
  if (!found.isDirectory()) throw new CliError(`${source} is neither a file nor a folder`);
  const tree = await readTree(source);
  progress.addTotal(
    tree.files.length,
    tree.files.reduce((sum, { size }) => sum + size, 0),
  );
  for (const empty of tree.emptyFolders)
    await bucket.put(`${key}/${empty === '' ? '' : `${empty}/`}`, new Uint8Array());
  await forEachConcurrent(tree.files, CONCURRENCY, async ({ path, size }) => {
    await uploadFile(bucket, join(source, path), size, `${key}/${path}`, progress);
    progress.addFile();
  });
  return { skipped: tree.leftOut };
}

/**
 * Copies from a volume to this machine. A target that is a folder is copied into; otherwise it becomes the
 * copy.
 */
export async function copyFromVolume(
  bucket: VolumeBucket,
  source: string,
  target: string,
  progress: CopyProgress,
): Promise<CopyResult> {
  const path = source.replace(/\/+$/, '');
  const into = target.endsWith('/') || (await isFolder(target));
  const destination = into ? join(target, basename(path) || '.') : target;
  const file = path === '' || source.endsWith('/') ? undefined : await bucket.head(path);
  if (file !== undefined) {
    progress.addTotal(1, file.size);
    await downloadFile(bucket, file, destination, progress);
    progress.addFile();
    return { skipped: [] };
  }
  const prefix = path === '' ? '' : `${path}/`;
  if (path !== '' && (await bucket.head(prefix)) === undefined)
    throw new CliError(`there is nothing at /${escapeControlCharacters(path)} in this volume`);
  await mkdir(destination, { recursive: true });
  await forEachConcurrent(bucket.list(prefix), CONCURRENCY, async (entry) => {
    const { key, size } = entry as RemoteFile;
    const below = key.slice(prefix.length);
    if (below.split('/').some((name) => name === '..' || name === '.'))
      throw new CliError(
        `the server listed a file ${escapeControlCharacters(JSON.stringify(key))}, which leads out of the folder`,
      );
    if (key.endsWith('/')) return void (await mkdir(join(destination, below), { recursive: true }));
    progress.addTotal(1, size);
    await downloadFile(bucket, entry as RemoteFile, join(destination, below), progress);
    progress.addFile();
  });
  return { skipped: [] };
}

interface Tree {
  files: { path: string; size: number }[];
  /** The path below the folder; '' for the folder itself. */
  emptyFolders: string[];
  leftOut: string[];
}

async function readTree(root: string): Promise<Tree> {
  const tree: Tree = { files: [], emptyFolders: [], leftOut: [] };
  const walk = async (below: string): Promise<void> => {
    const { names, invalidUtf8 } = await readEntryNames(join(root, below));
    const pathOf = (name: string): string => (below === '' ? name : `${below}/${name}`);
    if (names.length + invalidUtf8.length === 0) tree.emptyFolders.push(below);
    tree.leftOut.push(...invalidUtf8.map(pathOf));
    for (const path of names.map(pathOf)) {
      const status = await lstat(join(root, path));
      const behind = status.isSymbolicLink() ? await stat(join(root, path)).catch(() => status) : status;
      if (status.isDirectory()) await walk(path);
      else if (behind.isFile()) tree.files.push({ path, size: behind.size });
      else tree.leftOut.push(path);
    }
  };
  await walk('');
  return tree;
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    // It does not exist or cannot be read; writing to it reports the error.
    return false;
  }
}
