import { DatabaseSync } from 'node:sqlite';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Two servers never share one data directory. The lock is an exclusive lock of the operating
 * system, held through an empty SQLite file: it ends with its process, however that ends, so
 * there is never a stale one to remove.
 */
export interface DataDirectoryLock {
  release(): void;
}

export class DataDirectoryLocked extends Error {
  constructor(data: string) {
    super(
      `another Berth server uses the data directory ${data}${holder(data)}; stop it, or give this one ` +
        'its own directory with --data',
    );
    this.name = 'DataLocked';
  }
}

export function lockDataDirectory(data: string): DataDirectoryLock {
  const file = new DatabaseSync(join(data, 'lock'));
  try {
    file.exec(
      'pragma busy_timeout = 0; pragma journal_mode = delete; pragma locking_mode = exclusive; begin exclusive;',
    );
  } catch (error) {
    file.close();
    if (error instanceof Error && /locked|busy/i.test(error.message)) throw new DataDirectoryLocked(data);
    throw error;
  }
  return { release: () => file.close() };
}

function holder(data: string): string {
  try {
    const { pid, url } = JSON.parse(readFileSync(join(data, 'server.json'), 'utf8')) as {
      pid: number;
      url: string;
    };
    return ` (process ${pid}, ${url})`;
  } catch {
    return '';
  }
}
