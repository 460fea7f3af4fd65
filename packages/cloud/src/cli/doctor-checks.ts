import { constants } from 'node:fs';
import { access, mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import type { EngineCheck } from '../engines/engine-check.ts';
import type { CheckResult } from '../support/check-result.ts';
import type { Environment } from '../support/config/config-from-environment.ts';
import { CHOOSE_DATA_DIRECTORY } from '../support/data-directory.ts';
import { connect, type ApiClient } from './api-client.ts';
import { CliError } from './cli.errors.ts';
import { dataFolder } from './local-server.ts';

/** The checks of `berth doctor`, ordered so that a failure explains those after it. */
export async function runDoctorChecks(
  call: { options: { data: string | undefined }; env: Environment },
  engines: readonly EngineCheck[],
): Promise<CheckResult[]> {
  const folder = resolve(dataFolder(call.options.data, call.env));
  const local = [
    checkNode(process.versions.node),
    await checkDataFolder(folder),
    await checkSqlite(folder),
    ...(await Promise.all(engines.map((check) => check(call.env)))),
  ];
  let client: ApiClient;
  try {
    client = await connect(call);
  } catch (error) {
    return [...local, { check: 'server', ok: false, ...explain(error) }];
  }
  const health = await checkServer(client, 'server', '/healthz', 'look at its log');
  if (!health.ok) return [...local, health];
  return [
    ...local,
    health,
    await checkServer(client, 'ready', '/readyz', 'look at its log: a part that it needs does not answer'),
    await checkKey(client),
    ...(await checkBackups(client)),
  ];
}

const MIN_NODE_VERSION = 24;

export function checkNode(version: string): CheckResult {
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
export async function checkDataFolder(folder: string): Promise<CheckResult> {
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
      found: explain(error).found,
      remedy: 'put the data folder on a local disk, or use PostgreSQL with --database',
    };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Only an operator's key may see how scheduled backups went. */
async function checkBackups(client: ApiClient): Promise<CheckResult[]> {
  try {
    const { target, lastAt, error } = await client.get<{
      target: string;
      lastAt: string | null;
      error: string | null;
    }>('/v2/backup/status');
    const check = 'backups';
    if (target === '')
      return [{ check, ok: true, found: 'none are scheduled; set backup.target to have them made' }];
    if (error !== null)
      return [{ check, ok: false, found: `the last one failed: ${error}`, remedy: `check ${target}` }];
    return [
      { check, ok: true, found: `${target}, ${lastAt === null ? 'none yet' : `the last one at ${lastAt}`}` },
    ];
  } catch {
    return [];
  }
}

async function checkServer(
  client: ApiClient,
  check: string,
  path: string,
  remedy: string,
): Promise<CheckResult> {
  try {
    const { ok, status } = await client.send('GET', path);
    return { check, ok, found: `${client.url}${path} answers ${status}`, ...(ok ? {} : { remedy }) };
  } catch (error) {
    return { check, ok: false, ...explain(error) };
  }
}

/** 403 means that the key is valid but may not list keys. */
async function checkKey(client: ApiClient): Promise<CheckResult> {
  const check = 'key';
  try {
    const { ok, status } = await client.send('GET', '/v2/account/api-keys');
    if (ok) return { check, ok, found: `the key from ${client.keyOrigin} is accepted` };
    if (status === 403)
      return { check, ok: true, found: `the key from ${client.keyOrigin} is accepted, with narrow access` };
    if (status === 401)
      return {
        check,
        ok,
        found: client.hasKey ? `the key from ${client.keyOrigin} is refused` : client.keyOrigin,
        remedy: 'set BERTH_API_KEY to a key of this server',
      };
    return { check, ok, found: `the server answers ${status}`, remedy: 'look at its log' };
  } catch (error) {
    return { check, ok: false, ...explain(error) };
  }
}

/** Berth's own errors already say what to do. */
function explain(error: unknown): { found: string } {
  if (error instanceof CliError) return { found: error.message };
  return { found: error instanceof Error ? error.message : String(error) };
}
