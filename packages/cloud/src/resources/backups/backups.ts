import { existsSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type { Caller } from '../../domain/caller.ts';
import { auditEntry } from '../resource-context.ts';
import type { ResourceContext } from '../resource-context.ts';
import { isoTime, wallNow } from '../../support/clock.ts';
import { BerthError } from '../../support/errors.ts';
import type { PackedEntry } from '../../support/tar/tar-pack.ts';
import { BACKUP_FORMAT, DATABASE_FOLDER, KEYS_FOLDER, MANIFEST_FILE } from './backup-manifest.ts';
import type { BackupManifest } from './backup-manifest.ts';

/** Of the data folder, as it is. `pods` holds the disks of pods, so it goes with the volumes. */
const ALWAYS = ['installation', 'images', 'artifacts'];
const WITH_VOLUMES = ['volumes', 'pods'];
const TEMPORARY = 'backup-';
const LEFTOVER = /^backup-\w{6}$/;
const LEFTOVER_AGE_MS = 24 * 3_600_000;

export interface BackupOptions {
  /**
   * The master key and, where it is in a file, the root key. Without the master key nothing that is encrypted
   * can be read.
   */
  keys: boolean;
  volumes: boolean;
}

export interface BackupsDeps {
  context: ResourceContext;
  data: string;
  masterKey: Buffer;
}

/** Copies of the whole installation, made while it runs. */
export class Backups {
  readonly #deps: BackupsDeps;

  constructor(deps: BackupsDeps) {
    this.#deps = deps;
  }

  /** For an operator, as an archive. */
  async create(caller: Caller, options: BackupOptions): Promise<Readable> {
    if (!caller.operator)
      throw new BerthError(
        'forbidden',
        'a backup holds all accounts: only a key of the root account with full access makes one',
      );
    const { context } = this.#deps;
    await context.store.audit.record(auditEntry(context, caller, 'create', 'backup', 'backup'));
    return Readable.from(this.stream(options), { objectMode: false });
  }

  /** The copy of the database is as of one moment; files are copied after it. */
  async *stream({ keys, volumes }: BackupOptions): AsyncGenerator<Uint8Array> {
    const { data, context } = this.#deps;
    const folder = await mkdtemp(join(data, TEMPORARY));
    try {
      const schema = await context.store.backup.copyTo(join(folder, DATABASE_FOLDER));
      if (keys) await this.#copyKeys(join(folder, KEYS_FOLDER));
      const trees = [
        ...[DATABASE_FOLDER, ...(keys ? [KEYS_FOLDER] : [])].map((name) => ({
          path: join(folder, name),
          name,
        })),
        ...[...ALWAYS, ...(volumes ? WITH_VOLUMES : [])]
          .map((name) => ({ path: join(data, name), name }))
          .filter(({ path }) => existsSync(path)),
      ];
      const entries: PackedEntry[] = [];
      const manifest = (): BackupManifest => ({
        format: BACKUP_FORMAT,
        createdAt: isoTime(wallNow(context.clock)),
        database: { kind: context.store.backup.kind, schema },
        keys,
        volumes,
        entries,
      });
      // Loaded here and not above: a server starts without it.
      const { packTrees } = await import('../../support/tar/tar-pack.ts');
      yield* packTrees(trees, {
        onEntry: (entry) => void entries.push(entry),
        lastFile: () => ({ name: MANIFEST_FILE, content: JSON.stringify(manifest()) }),
      });
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  /** Removes what a backup left behind whose server died. */
  async removeLeftovers(): Promise<void> {
    const { data, context } = this.#deps;
    const before = Date.now() - LEFTOVER_AGE_MS;
    for (const name of (await readdir(data)).filter((one) => LEFTOVER.test(one))) {
      const path = join(data, name);
      // With SQLite this server alone uses the folder; else another one may be making a backup there.
      const isOld = context.store.backup.kind === 'sqlite' || (await stat(path)).mtimeMs < before;
      if (isOld) await rm(path, { recursive: true, force: true });
    }
  }

  async #copyKeys(folder: string): Promise<void> {
    const { data, masterKey } = this.#deps;
    await mkdir(folder, { mode: 0o700 });
    await writeFile(join(folder, 'master.key'), `${masterKey.toString('hex')}\n`, { mode: 0o600 });
    const rootKey = join(data, 'root.key');
    if (existsSync(rootKey)) await copyFile(rootKey, join(folder, 'root.key'));
  }
}
