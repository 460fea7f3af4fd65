import { statSync } from 'node:fs';
import { access, constants, readdir, symlink } from 'node:fs/promises';
import { delimiter, join, resolve } from 'node:path';
import { BerthError, ruleError } from '../../support/errors.ts';
import { siblingProgram } from '../../support/program-files.ts';
import type { InstanceSpec } from '../instance.ts';
import { readBerthJson } from './berth-json.ts';
import { readPythonProject } from './python/python-project.ts';

/** Runs directly on the host; the start command is required. */
const SHELL_IMAGE = 'local/shell';

const FOLDER_IMAGE = /^local\/([a-z0-9][a-z0-9._-]{0,127})(?::([A-Za-z0-9][A-Za-z0-9._-]{0,127}))?$/;
const BOOTSTRAP = siblingProgram('run-handler', import.meta.url);
/** Node detects by itself whether a handler is an ES module; its warning about that is not useful here. */
const NO_MODULE_TYPE_WARNING = '--disable-warning=MODULE_TYPELESS_PACKAGE_JSON';
const HANDLERS = ['handler.ts', 'handler.js', 'handler.mjs', 'handler.py'] as const;

export interface LocalImagePaths {
  /** `<images>/<name>/<digest>/` is a snapshot that `berth deploy` uploaded. */
  images: string;
  /** Each subfolder is an image with the same name. */
  examples: string | null;
  /** The module that exports `serve`. */
  workerModule: string;
  /** Python's bytecode cache, so that nothing is written into the image. */
  pythonCache: string;
}

/** What an image provides when it runs without a container. */
export interface LocalImage {
  /** The image's files, shared read-only by all its instances; null for `local/shell`. */
  folder: string | null;
  command: readonly string[];
}

/** Why this image cannot run here; undefined if it can. */
export function imageProblem(image: string, paths: LocalImagePaths): string | undefined {
  try {
    const { folder } = resolveImage(image, paths);
    if (folder !== null) readPythonProject(image, folder);
    return undefined;
  } catch (error) {
    if (error instanceof BerthError) return error.message;
    throw error;
  }
}

export function resolveImage(image: string, paths: LocalImagePaths): LocalImage {
  if (image === SHELL_IMAGE || image.startsWith(`${SHELL_IMAGE}:`)) return { folder: null, command: [] };
  const [, name, digest] = FOLDER_IMAGE.exec(image) ?? [];
  if (name === undefined) {
    throw ruleError(
      `the image ${JSON.stringify(image)} needs a container engine, and none is connected here; ` +
        `without one, ${SHELL_IMAGE} and what berth deploy made (local/<name>) can run`,
    );
  }
  const folder = foldersFor(name, digest, paths).find(isFolder);
  if (folder === undefined)
    throw ruleError(
      `there is no image ${JSON.stringify(image)} on this machine; berth deploy makes one from a folder`,
    );
  return { folder, command: handlerOf(image, folder, paths) };
}

function foldersFor(
  name: string,
  digest: string | undefined,
  { images, examples }: LocalImagePaths,
): string[] {
  if (digest !== undefined && digest !== 'latest') return [join(images, name, digest)];
  return [...(examples === null ? [] : [join(examples, name)]), join(images, name, 'latest')];
}

function handlerOf(image: string, folder: string, { workerModule, pythonCache }: LocalImagePaths): string[] {
  const { command } = readBerthJson(image, folder);
  if (command !== undefined) return [...command];
  const handler = HANDLERS.find((name) => statSync(join(folder, name), { throwIfNoEntry: false })?.isFile());
  if (handler === undefined)
    throw ruleError(
      `the image ${JSON.stringify(image)} has nothing to run: it needs a ${HANDLERS.join(', a ')} or a ` +
        'berth.json with a "command"',
    );
  const file = join(folder, handler);
  if (handler === 'handler.py') return ['python3', '-u', '-X', `pycache_prefix=${pythonCache}`, file];
  return [process.execPath, NO_MODULE_TYPE_WARNING, BOOTSTRAP, workerModule, file];
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** Links the image's files into the working folder. Existing mounts take precedence. */
export async function linkImageFiles(folder: string, root: string): Promise<void> {
  for (const name of await readdir(folder)) {
    try {
      await symlink(join(folder, name), join(root, name));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
}

/** As with containers, the spec's command overrides the image's. */
export function resolveCommand(
  image: LocalImage,
  { entrypoint, cmd }: InstanceSpec['command'],
): [string, ...string[]] {
  const given = [...entrypoint, ...cmd];
  const [program, ...args] = given.length > 0 ? given : image.command;
  if (program === undefined) throw ruleError(`${SHELL_IMAGE} is the bare machine: it needs a start command`);
  return [program, ...args];
}

/** Finds a program in the PATH of the instance. */
export async function findProgram(program: string, root: string, path: string): Promise<string> {
  const candidates = program.includes('/')
    ? [resolve(root, program)]
    : path.split(delimiter).map((folder) => resolve(root, folder, program));
  for (const candidate of candidates) {
    try {
      await access(candidate, constants.X_OK);
      if (statSync(candidate).isFile()) return candidate;
    } catch {
      // Not here.
    }
  }
  throw ruleError(`the command ${JSON.stringify(program)} was not found on this machine`);
}
