import { constants } from 'node:fs';
import { access, mkdtemp, rm, stat, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { formatBytes } from '../support/byte-size.ts';
import type { CheckResult } from '../support/check-result.ts';
import type { Environment } from '../support/config/config-from-environment.ts';
import { CHOOSE_DATA_DIRECTORY } from '../support/data-directory.ts';
import type { EngineCheck } from './engine-check.ts';

/** What Berth needs of this machine, ordered so that a failure explains those after it. */
export async function runMachineChecks(
  dataFolder: string,
  env: Environment,
  engines: readonly EngineCheck[],
): Promise<CheckResult[]> {
  return [
    checkNode(process.versions.node),
    await checkDataFolder(dataFolder),
    await checkDisk(dataFolder),
    await checkSqlite(dataFolder),
    ...(await Promise.all(engines.map((check) => check(env)))),
  ];
}

const MIN_NODE_VERSION = 24;

function checkNode(version: string): CheckResult {
  const ok = Number.parseInt(version, 10) >= MIN_NODE_VERSION;
  return {
    check: 'node',
    ok,
    found: `Node ${version}`,
    ...(ok
      ? {}
      : {
          remedy: `Berth needs Node ${MIN_NODE_VERSION} or newer; run "npm install" in the project, which brings one`,
        }),
  };
}

/** A missing folder is created at the first start, below the nearest existing one. */
async function checkDataFolder(folder: string): Promise<CheckResult> {
  const check = 'data folder';
  const remedy = `let this user write there, or ${CHOOSE_DATA_DIRECTORY}`;
  for (let existing = folder; ; existing = dirname(existing)) {
    try {
      if (!(await stat(existing)).isDirectory())
        return { check, ok: false, found: `${existing} is not a folder`, remedy: CHOOSE_DATA_DIRECTORY };
      await access(existing, constants.W_OK | constants.X_OK);
      return {
        check,
        ok: true,
        found: existing === folder ? folder : `${folder} is made at the first start`,
      };
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== 'ENOENT' || existing === dirname(existing))
        return { check, ok: false, found: `${existing} cannot be written (${code})`, remedy };
    }
  }
}

/** With less than this free, something should be done. */
const MIN_FREE_BYTES = 1e9;

/** The disk of the data folder, or of the nearest folder that exists. */
async function checkDisk(
  folder: string,
  sizes: (path: string) => Promise<{ bsize: number; blocks: number; bavail: number }> = statfs,
): Promise<CheckResult> {
  const check = 'disk';
  for (let existing = folder; ; existing = dirname(existing)) {
    const found = await sizes(existing).catch(() => undefined);
    if (found === undefined && existing !== dirname(existing)) continue;
    if (found === undefined) return { check, ok: true, found: 'its size is not known' };
    const free = found.bavail * found.bsize;
    const size = found.blocks * found.bsize;
    const ok = free >= MIN_FREE_BYTES;
    return {
      check,
      ok,
      found: `${formatBytes(free)} of ${formatBytes(size)} are free at ${existing}`,
      ...(ok
        ? {}
        : {
            remedy:
              'delete what is not needed ("berth image prune", volumes), or limit accounts (docs/quotas.md)',
          }),
    };
  }
}

/**
 * Creates a test database, in the data folder if it exists: some network disks do not support the file locks
 * that SQLite needs.
 */
async function checkSqlite(folder: string): Promise<CheckResult> {
  const check = 'sqlite';
  const directory = await mkdtemp(join(folder, 'check-')).catch(() =>
    mkdtemp(join(tmpdir(), 'berth-check-')),
  );
  try {
    const { DatabaseSync } = await import('node:sqlite');
    const database = new DatabaseSync(join(directory, 'check.db'));
    database.exec(
      'PRAGMA journal_mode = WAL; CREATE TABLE answers (answer INTEGER); INSERT INTO answers VALUES (42)',
    );
    const row = database.prepare('SELECT answer, sqlite_version() AS version FROM answers').get();
    database.close();
    return { check, ok: row?.['answer'] === 42, found: `SQLite ${String(row?.['version'])}` };
  } catch (error) {
    return {
      check,
      ok: false,
      found: error instanceof Error ? error.message : String(error),
      remedy: 'put the data folder on a local disk, or use PostgreSQL with --database',
    };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
