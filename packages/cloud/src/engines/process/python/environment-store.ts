import { existsSync, readFileSync, statSync, utimesSync } from 'node:fs';
import { link, lstat, mkdir, readdir, rm, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Ids } from '../../../support/ids.ts';
import { removeTree } from '../../../support/remove-tree.ts';
import { isAlive, killInstanceProcesses } from '../instance-processes.ts';
import { bootId, findProcess } from '../process-table.ts';

/** A complete environment. */
export interface StoredEnvironment {
  owner: string;
  key: string;
  folder: string;
  /** When an instance was last started with it. */
  usedAt: number;
  bytes: number;
}

interface Pointer {
  /** The name of its folder. */
  folder: string;
  bytes: number;
}

const HOME = 'home';
const POINTER = '.json';
/** Beside a folder while it is being filled; names the Berth process that does. */
const BUILDING = '.building';

/**
 * The environments on disk. `<path>/<account>/<key>-<unique>/` is one, and `<key>.json` beside it names it.
 * An environment cannot be moved, so it is built where it stays, and the file that names it is created when
 * it is complete: after a crash, a folder that no file names is removed.
 */
export class EnvironmentStore {
  readonly #path: string;
  readonly #ids: Ids;

  constructor(path: string, ids: Ids) {
    this.#path = path;
    this.#ids = ids;
  }

  ownerFolder(owner: string): string {
    return join(this.#path, owner);
  }

  /** The home folder of an account's builds, with their caches. It goes with the last environment. */
  homeFolder(owner: string): string {
    return join(this.ownerFolder(owner), HOME);
  }

  /** Undefined if there is none, or the Python that it was built with is gone. */
  find(owner: string, key: string): StoredEnvironment | undefined {
    const file = this.#pointer(owner, key);
    try {
      const { folder, bytes } = JSON.parse(readFileSync(file, 'utf8')) as Pointer;
      const path = join(this.ownerFolder(owner), folder);
      if (!existsSync(join(path, 'bin', 'python3'))) return undefined;
      return { owner, key, folder: path, bytes, usedAt: statSync(file).mtimeMs };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
  }

  markUsed({ owner, key }: Pick<StoredEnvironment, 'owner' | 'key'>, now: number): void {
    utimesSync(this.#pointer(owner, key), now / 1000, now / 1000);
  }

  /** An empty folder for a build. */
  async createFolder(owner: string, key: string): Promise<string> {
    const folder = join(this.ownerFolder(owner), `${key}-${this.#ids.resource()}`);
    await mkdir(this.ownerFolder(owner), { recursive: true, mode: 0o700 });
    const { startTicks = 0 } = findProcess(process.pid) ?? {};
    await writeFile(folder + BUILDING, JSON.stringify({ pid: process.pid, startTicks, bootId: bootId() }));
    await mkdir(folder, { mode: 0o700 });
    return folder;
  }

  /** The folder is complete. If another server was faster, its environment is used. */
  async publish(owner: string, key: string, folder: string): Promise<StoredEnvironment> {
    const bytes = await sizeOf(folder);
    const draft = folder + POINTER;
    const pointer: Pointer = { folder: folder.slice(this.ownerFolder(owner).length + 1), bytes };
    await writeFile(draft, JSON.stringify(pointer), { mode: 0o600 });
    // What an earlier build left is of no use, or it would not have been built again.
    if (this.find(owner, key) === undefined) await rm(this.#pointer(owner, key), { force: true });
    try {
      await link(draft, this.#pointer(owner, key));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      await removeTree(folder);
    } finally {
      await rm(draft, { force: true });
      await rm(folder + BUILDING, { force: true });
    }
    const published = this.find(owner, key);
    if (published === undefined) throw new Error(`the environment ${key} is gone again`);
    return published;
  }

  /** Removes what a failed build left. */
  async discard(folder: string): Promise<void> {
    await killInstanceProcesses({ root: folder, cgroup: null, started: undefined });
    await removeTree(folder);
    await rm(folder + BUILDING, { force: true });
  }

  /** The file that names it goes first: an environment is complete, or nobody finds it. */
  async remove({ owner, key, folder }: StoredEnvironment): Promise<void> {
    await rm(this.#pointer(owner, key), { force: true });
    await removeTree(folder);
  }

  async list(): Promise<StoredEnvironment[]> {
    const owners = await namesIn(this.#path);
    const found = await Promise.all(
      owners.map(async (owner) =>
        (await namesIn(this.ownerFolder(owner)))
          .filter((name) => name.endsWith(POINTER))
          .map((name) => this.find(owner, name.slice(0, -POINTER.length))),
      ),
    );
    return found.flat().filter((environment) => environment !== undefined);
  }

  /** Removes folders that nothing names and that nobody fills or uses. */
  async removeAbandoned(isInUse: (folder: string) => boolean): Promise<void> {
    const named = new Set((await this.list()).map(({ folder }) => folder));
    for (const owner of await namesIn(this.#path)) {
      for (const name of await namesIn(this.ownerFolder(owner))) {
        const folder = join(this.ownerFolder(owner), name);
        if (!/^[0-9a-f]+-[^.]+$/.test(name) || named.has(folder) || isInUse(folder)) continue;
        if (!isBuilderAlive(folder)) await this.discard(folder);
      }
    }
  }

  /** Removes the caches of accounts without an environment. */
  async removeUnusedHomes(): Promise<void> {
    for (const owner of await namesIn(this.#path)) {
      const names = await namesIn(this.ownerFolder(owner));
      if (!names.every((name) => name === HOME)) continue;
      await removeTree(this.homeFolder(owner));
      // A build may begin just now: then it is not empty.
      await rmdir(this.ownerFolder(owner)).catch(() => undefined);
    }
  }

  #pointer(owner: string, key: string): string {
    return join(this.ownerFolder(owner), key + POINTER);
  }
}

function isBuilderAlive(folder: string): boolean {
  try {
    const builder = JSON.parse(readFileSync(folder + BUILDING, 'utf8')) as {
      pid: number;
      startTicks: number;
      bootId: string;
    };
    return builder.bootId === bootId() && isAlive(builder);
  } catch {
    return false;
  }
}

async function sizeOf(folder: string): Promise<number> {
  let bytes = 0;
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) bytes += (await lstat(join(entry.parentPath, entry.name))).size;
  return bytes;
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return [];
    throw error;
  }
}
