import { mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { writePrivateFile } from '../../support/private-file.ts';
import type { ImageFile } from '../../domain/images/image-files.ts';
import { IMAGE_DIGEST_PATTERN } from '../../domain/images/image-files.ts';

/** What is written down of a snapshot, beside its folder. */
export interface SnapshotMetadata {
  files: number;
  size: number;
  createdAt: number;
}

export interface Snapshot extends SnapshotMetadata {
  digest: string;
}

const DRAFT_PREFIX = '.draft-';
/** A draft as old as this is what a server that ended half-way has left. */
const DRAFT_LIFETIME_MS = 3_600_000;
/** Files written at a time: enough for the disk to settle several with one turn. */
const WRITE_CONCURRENCY = 16;

/**
 * Snapshots of folders on disk: `<folder>/<name>/<digest>/` holds the files and
 * `<folder>/<name>/<digest>.json` what is known of them. A snapshot is there whole or not at all,
 * and never changes.
 */
export class ImageSnapshots {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async find(name: string, digest: string): Promise<Snapshot | undefined> {
    const place = join(this.#folder, name, digest);
    if (!(await directoryExists(place))) return undefined;
    return { digest, ...(JSON.parse(await readFile(`${place}.json`, 'utf8')) as SnapshotMetadata) };
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

  /** `unique` tells this draft from those that are written at the same time. False where someone else was faster with the same files. */
  async write(
    name: string,
    digest: string,
    files: readonly ImageFile[],
    card: SnapshotMetadata,
    unique: string,
  ): Promise<boolean> {
    const home = join(this.#folder, name);
    const draft = join(this.#folder, DRAFT_PREFIX + unique);
    await mkdir(home, { recursive: true, mode: 0o700 });
    await this.#dropOldDrafts(card.createdAt);
    try {
      await mkdir(draft, { mode: 0o700 });
      await writeFiles(draft, files);
      writePrivateFile(join(home, `${digest}.json`), JSON.stringify(card));
      await rename(draft, join(home, digest));
      await syncDirectory(home);
      return true;
    } catch (error) {
      // Someone uploaded the same files in the meantime: theirs are as good.
      if (!isAlreadyExistsError(error)) throw error;
      return false;
    } finally {
      await rm(draft, { recursive: true, force: true });
    }
  }

  /** It is gone at once; its files go after that. */
  async remove(name: string, digest: string, unique: string): Promise<void> {
    const home = join(this.#folder, name);
    const draft = join(this.#folder, DRAFT_PREFIX + unique);
    await rename(join(home, digest), draft);
    await rm(join(home, `${digest}.json`), { force: true });
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
  const waiting = files.values();
  await Promise.all(
    Array.from({ length: WRITE_CONCURRENCY }, async () => {
      for (const file of waiting) await writeFile(root, file);
    }),
  );
}

/** On disk when it resolves: what an endpoint is told to run must survive a power cut. */
async function writeFile(root: string, { path, executable, content }: ImageFile): Promise<void> {
  const file = await open(join(root, path), 'wx', executable ? 0o755 : 0o644);
  try {
    await file.writeFile(content);
    // The mode above is less what the umask takes away.
    await file.chmod(executable ? 0o755 : 0o644);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** The name in a folder is on disk only when the folder is. */
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
