import { formatBytes } from '../../support/byte-size.ts';
import { lstat, readdir, readFile, realpath, stat } from 'node:fs/promises';
import { basename, join, resolve, sep } from 'node:path';
import type { ImageFile } from '../../domain/images/image-files.ts';
import { CliError } from '../cli.errors.ts';
import { IgnoreRules } from './ignore-rules.ts';
import { MAX_IMAGE_UPLOAD_BYTES, MAX_IMAGE_FILES } from '../../domain/limits.ts';

/** A folder must have one of these, so that there is something to run. */
const HANDLERS = ['handler.ts', 'handler.js', 'handler.mjs', 'handler.py', 'berth.json'];

/** The first of these files that exists is used. */
const IGNORE_FILES = ['.berthignore', '.gitignore'];
/** Never uploaded. */
const ALWAYS_IGNORED = new Set(['.git']);

const EXECUTABLE = 0o111;
/** The size of an upload includes each file's path and some punctuation. */
const PER_FILE_OVERHEAD = 100;

export interface SourceFolder {
  files: ImageFile[];
  size: number;
  /** Links out of the folder or to another folder, and entries that are not files. */
  skipped: string[];
}

/** Reads the files of a folder that are uploaded into memory. */
export async function readSourceFolder(folder: string): Promise<SourceFolder> {
  const root = await realpath(folder);
  const rules = new IgnoreRules(await readFirstExisting(root, IGNORE_FILES));
  const found: SourceFolder = { files: [], size: 0, skipped: [] };
  const sizes = new Map<string, number>();
  let room = MAX_IMAGE_UPLOAD_BYTES;

  const add = async (path: string, { mode, size }: { mode: number; size: number }): Promise<void> => {
    const top = path.split('/', 1)[0] ?? path;
    sizes.set(top, (sizes.get(top) ?? 0) + size);
    room -= Math.ceil(size / 3) * 4 + path.length + PER_FILE_OVERHEAD;
    if (room < 0 || found.files.length >= MAX_IMAGE_FILES) throw tooLarge(folder, sizes);
    const content = await readFile(join(root, path));
    found.files.push({ path, executable: (mode & EXECUTABLE) !== 0, content });
    found.size += content.length;
  };
  const walk = async (below: string): Promise<void> => {
    for (const name of (await readdir(join(root, below))).sort()) {
      const path = below === '' ? name : `${below}/${name}`;
      const place = join(root, path);
      const status = await lstat(place);
      if (ALWAYS_IGNORED.has(name) || rules.ignores(path, status.isDirectory())) continue;
      if (status.isDirectory()) await walk(path);
      else if (status.isFile()) await add(path, status);
      else if (status.isSymbolicLink() && (await isLinkToFileIn(root, place)))
        await add(path, await stat(place));
      else found.skipped.push(path);
    }
  };
  await walk('');
  if (!found.files.some(({ path }) => HANDLERS.includes(path))) throw nothingToRun(folder, found);
  return found;
}

/** The image name of a folder: `My App` becomes `my-app`. */
export function imageNameFor(name: string): string {
  return (
    name
      .toLowerCase()
      .replaceAll(/[^a-z0-9_]+/g, '-')
      .replaceAll(/[-_]{2,}/g, '-')
      .slice(0, 60)
      .replaceAll(/^[-_]+|[-_]+$/g, '') || 'app'
  );
}

export function folderName(folder: string): string {
  return basename(resolve(folder)) || 'app';
}

export async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    return false;
  }
}

/** A link to a file in the same folder is read as that file. */
async function isLinkToFileIn(root: string, link: string): Promise<boolean> {
  try {
    const target = await realpath(link);
    return target.startsWith(root + sep) && (await stat(target)).isFile();
  } catch {
    // A broken link.
    return false;
  }
}

async function readFirstExisting(root: string, names: readonly string[]): Promise<string> {
  for (const name of names) {
    try {
      return await readFile(join(root, name), 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
  return '';
}

function nothingToRun(folder: string, { files }: SourceFolder): CliError {
  const docker = files.some(({ path }) => path === 'Dockerfile')
    ? `; its Dockerfile is for a container engine: "docker build -t NAME ${folder}", then "berth deploy NAME"`
    : '';
  return new CliError(
    `${folder} has nothing to run: it needs a ${HANDLERS.slice(0, -1).join(', a ')}, or a berth.json ` +
      `with a "command"${docker}`,
  );
}

/** `sizes` are by top-level entry. */
function tooLarge(folder: string, sizes: ReadonlyMap<string, number>): CliError {
  const largest = [...sizes]
    .sort(([, a], [, b]) => b - a)
    .slice(0, 3)
    .map(([top, size]) => `${top} (${formatBytes(size)})`);
  const most = `${MAX_IMAGE_FILES} files with ${formatBytes((MAX_IMAGE_UPLOAD_BYTES / 4) * 3)} in all`;
  return new CliError(
    `${folder} is too large to upload, which is for ${most}; name what need not run in ` +
      `${join(folder, '.berthignore')}. The largest so far: ${largest.join(', ')}`,
  );
}
