import { mkdir, open, readdir, readFile, rename, rm, stat, writeFile as writeText } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { writePrivateFile } from '../../support/private-file.ts';
import type { ImageFile } from '../../domain/images/image-files.ts';
import { IMAGE_DIGEST_PATTERN } from '../../domain/images/image-files.ts';

/** Metadata of a snapshot, stored beside its directory. */
export interface SnapshotMetadata {
  files: number;
  size: number;
  createdAt: number;
}

export interface Snapshot extends SnapshotMetadata {
  digest: string;
}

const DRAFT_PREFIX = '.draft-';
/** An older draft was left by a server that stopped while writing it. */
const DRAFT_LIFETIME_MS = 3_600_000;
/** Files written concurrently: enough for the disk to combine several syncs. */
const WRITE_CONCURRENCY = 16;

/**
 * Snapshots of source folders on disk: `<folder>/<name>/<digest>/` holds the files and
 * `<folder>/<name>/<digest>.json` the metadata. A snapshot is either complete or absent, and it never
 * changes.
 */
export class ImageSnapshots {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async find(name: string, digest: string): Promise<Snapshot | undefined> {
    const path = join(this.#folder, name, digest);
    if (!(await directoryExists(path))) return undefined;
    return { digest, ...(JSON.parse(await readFile(`${path}.json`, 'utf8')) as SnapshotMetadata) };
  }

  /** Remembers that the files were uploaded once more. A separate file: the metadata never changes. */
  async touch(name: string, digest: string, at: number): Promise<void> {
    await writeText(this.#uploadedFile(name, digest), String(at), { mode: 0o600 });
  }

  /** When the files were last uploaded again; undefined where that never happened. */
  async uploadedAgainAt(name: string, digest: string): Promise<number | undefined> {
    return readFile(this.#uploadedFile(name, digest), 'utf8').then(Number, () => undefined);
  }

  #uploadedFile(name: string, digest: string): string {
    return join(this.#folder, name, `${digest}.uploaded`);
  }

  folderOf(name: string, digest: string): string {
    return join(this.#folder, name, digest);
  }

  async names(): Promise<string[]> {
    return (await readEntries(this.#folder)).filter((name) => !name.startsWith('.'));
  }

  async list(name: string): Promise<Snapshot[]> {
    const found = await Promise.all(
      (await readEntries(join(this.#folder, name)))
        .filter((entry) => IMAGE_DIGEST_PATTERN.test(entry))
        .sort()
        .map((digest) => this.find(name, digest)),
    );
    return found.filter((snapshot) => snapshot !== undefined);
  }

  /**
   * `unique` keeps drafts that are written at the same time apart. Returns false if another upload of the
   * same files finished first.
   */
  async write(
    name: string,
    digest: string,
    files: readonly ImageFile[],
    metadata: SnapshotMetadata,
    unique: string,
  ): Promise<boolean> {
    return this.#write(name, digest, metadata, unique, (draft) => writeFiles(draft, files));
  }

  /** The same, from a tar archive. */
  writeArchive(
    name: string,
    digest: string,
    archive: AsyncIterable<Uint8Array>,
    metadata: SnapshotMetadata,
    unique: string,
  ): Promise<boolean> {
    return this.#write(name, digest, metadata, unique, async (draft) => {
      const { unpackTar } = await import('../../support/tar/tar-unpack.ts');
      await unpackTar(draft, archive);
    });
  }

  async #write(
    name: string,
    digest: string,
    metadata: SnapshotMetadata,
    unique: string,
    fill: (draft: string) => Promise<void>,
  ): Promise<boolean> {
    const imageFolder = join(this.#folder, name);
    const draft = join(this.#folder, DRAFT_PREFIX + unique);
    await mkdir(imageFolder, { recursive: true, mode: 0o700 });
    await this.#dropOldDrafts(metadata.createdAt);
    try {
      await mkdir(draft, { mode: 0o700 });
      await fill(draft);
      writePrivateFile(join(imageFolder, `${digest}.json`), JSON.stringify(metadata));
      await rename(draft, join(imageFolder, digest));
      await syncDirectory(imageFolder);
      return true;
    } catch (error) {
      // The same files were uploaded at the same time: keep the other copy.
      if (!isAlreadyExistsError(error)) throw error;
      return false;
    } finally {
      await rm(draft, { recursive: true, force: true });
    }
  }

  /**
   * The rename removes the snapshot atomically; its files are deleted afterwards. Of two removals at once, such
   * as by a request and by the sync with other servers, the later one finds nothing left to do.
   */
  async remove(name: string, digest: string, unique: string): Promise<void> {
    const imageFolder = join(this.#folder, name);
    const draft = join(this.#folder, DRAFT_PREFIX + unique);
    await rename(join(imageFolder, digest), draft).catch((error: unknown) => {
      if (codeOf(error) !== 'ENOENT') throw error;
    });
    await rm(join(imageFolder, `${digest}.json`), { force: true });
    await rm(this.#uploadedFile(name, digest), { force: true });
    await rm(join(imageFolder, `${digest}.shared`), { force: true });
    await rm(draft, { recursive: true, force: true });
  }

  async #dropOldDrafts(now: number): Promise<void> {
    for (const name of await readEntries(this.#folder)) {
      if (!name.startsWith(DRAFT_PREFIX)) continue;
      const draft = join(this.#folder, name);
      const written = await stat(draft).catch(() => undefined);
      if (written !== undefined && now - written.mtimeMs > DRAFT_LIFETIME_MS)
        await rm(draft, { recursive: true, force: true });
    }
  }
}

async function writeFiles(root: string, files: readonly ImageFile[]): Promise<void> {
  for (const folder of new Set(files.map(({ path }) => dirname(join(root, path)))))
    await mkdir(folder, { recursive: true, mode: 0o755 });
  const remaining = files.values();
  await Promise.all(
    Array.from({ length: WRITE_CONCURRENCY }, async () => {
      for (const file of remaining) await writeFile(root, file);
    }),
  );
}

/** The file is on disk when this resolves: the image of an endpoint must survive a power failure. */
async function writeFile(root: string, { path, executable, content }: ImageFile): Promise<void> {
  const file = await open(join(root, path), 'wx', executable ? 0o755 : 0o644);
  try {
    await file.writeFile(content);
    // The umask may have removed bits of the mode given to open().
    await file.chmod(executable ? 0o755 : 0o644);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** A directory entry is durable only after the directory itself is synced. */
async function syncDirectory(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function readEntries(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return [];
    throw error;
  }
}

async function directoryExists(folder: string): Promise<boolean> {
  try {
    return (await stat(folder)).isDirectory();
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return false;
    throw error;
  }
}

function isAlreadyExistsError(error: unknown): boolean {
  return codeOf(error) === 'ENOTEMPTY' || codeOf(error) === 'EEXIST';
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined;
}
