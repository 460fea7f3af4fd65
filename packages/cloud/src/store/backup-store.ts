import type { Dialect } from './sql.ts';

export interface BackupStore {
  readonly kind: Dialect;
  /** Writes a consistent copy of the database below a folder. Resolves to the version of its schema. */
  copyTo(folder: string): Promise<number>;
  /** How the last scheduled backup went; undefined before the first one. */
  lastResult(): Promise<BackupResult | undefined>;
  saveResult(result: BackupResult): Promise<void>;
}

export interface BackupResult {
  at: number;
  /** Null where it went well. */
  error: string | null;
}
