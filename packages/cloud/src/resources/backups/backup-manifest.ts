import type { PackedEntry } from '../../support/tar/tar-pack.ts';

/** Raised when an older Berth could not read what a newer one writes. */
export const BACKUP_FORMAT = 1;
/** The last entry of a backup: one that breaks off does not have it. */
export const MANIFEST_FILE = 'manifest.json';
/** Folders of a backup, beside those of the data folder. */
export const DATABASE_FOLDER = 'database';
export const KEYS_FOLDER = 'keys';

/** What a backup holds. */
export interface BackupManifest {
  format: number;
  createdAt: string;
  database: { kind: 'sqlite' | 'postgres'; schema: number };
  keys: boolean;
  volumes: boolean;
  entries: PackedEntry[];
}
