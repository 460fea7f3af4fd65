import { createHmac } from 'node:crypto';
import { join } from 'node:path';
import type { Ids } from './ids.ts';
import { readIfExists, writePrivateFile } from './private-file.ts';

export interface InstallationOptions {
  data: string;
  /** A postgres URL; empty is SQLite in the data folder. */
  database: string;
  masterKey: Buffer;
}

/**
 * Identifies one installation of Berth on shared systems, such as in container labels. Servers that share a
 * database are one installation; with SQLite, each data folder is one.
 */
export function loadInstallationId({ data, database, masterKey }: InstallationOptions, ids: Ids): string {
  if (database !== '') {
    const { host, pathname } = new URL(database);
    return createHmac('sha256', masterKey)
      .update(`installation ${host}${pathname}`)
      .digest('hex')
      .slice(0, 16);
  }
  const file = join(data, 'installation');
  const kept = readIfExists(file)?.trim();
  if (kept) return kept;
  const fresh = ids.resource();
  writePrivateFile(file, `${fresh}\n`);
  return fresh;
}
