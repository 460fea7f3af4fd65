import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';

/** Environments of all servers, packed. A name is `<account>/<key>`. */
export interface EnvironmentArchives {
  /** Undefined if there is none. */
  open(name: string): Promise<Readable | undefined>;
  add(name: string, content: AsyncIterable<Uint8Array>): Promise<void>;
  /** One was not kept, or could not be used; it is built here then. */
  onProblem(what: string, error: unknown): void;
}

/** A larger one is built on each machine: to fetch its packages takes no longer than to fetch it. */
export const MAX_ARCHIVED_BYTES = 2 * 1024 ** 3;
/** Compiled modules are of a path, and made again. */
const NOT_PACKED = new Set(['pycache', 'tmp']);
/** In an archive: the folder where the environment was built. */
const BUILT_AT = '.berth-built-at';

/** Whoever's code filled the folder: no link in it is followed. */
export async function* packEnvironment(folder: string): AsyncGenerator<Uint8Array> {
  const { packTrees } = await import('../../../support/tar/tar-pack.ts');
  const names = (await readdir(folder)).filter((name) => !NOT_PACKED.has(name));
  yield* packTrees(
    names.map((name) => ({ path: join(folder, name), name })),
    { lastFile: () => ({ name: BUILT_AT, content: folder }) },
  );
}

/** Answers where it was built. */
export async function unpackEnvironment(folder: string, content: AsyncIterable<Uint8Array>): Promise<string> {
  const { unpackTar } = await import('../../../support/tar/tar-unpack.ts');
  await unpackTar(folder, content);
  const file = join(folder, BUILT_AT);
  const builtAt = await readFile(file, 'utf8');
  await rm(file);
  return builtAt;
}
