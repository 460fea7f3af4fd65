import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';

/** The databases that every suite runs over. */
export const DATABASES: readonly DatabaseKind[] =
  process.env['BERTH_TEST_TIER'] === 'unit' ? ['sqlite'] : ['sqlite', 'postgres'];
export type DatabaseKind = 'sqlite' | 'postgres';

/** A fresh database of one kind, and a folder for what else a server keeps. */
export interface TestDatabase {
  kind: DatabaseKind;
  data: string;
  /** What --database takes. */
  url: string;
  drop(): Promise<void>;
}

/**
 * On PostgreSQL it has all its tables already, where the run has a template to copy; a test of what happens to
 * an empty one asks for that.
 */
export async function createTestDatabase(
  kind: DatabaseKind,
  { empty = false }: { empty?: boolean } = {},
): Promise<TestDatabase> {
  const data = mkdtempSync(join(tmpdir(), 'berth-test-'));
  const removeFolder = (): void => {
    killInstances(data);
    rmSync(data, { recursive: true, force: true, maxRetries: 3 });
  };
  if (kind === 'sqlite') return { kind, data, url: '', drop: async () => removeFolder() };
  const name = `berth_${randomBytes(6).toString('hex')}`;
  const template = process.env['BERTH_TEST_DATABASE_TEMPLATE'];
  await asAdministrator(
    empty || template === undefined
      ? `create database ${name}`
      : `create database ${name} template ${template} strategy file_copy`,
  );
  return {
    kind,
    data,
    url: Object.assign(new URL(administratorUrl()), { pathname: `/${name}` }).href,
    drop: async () => {
      await asAdministrator(`drop database ${name} with (force)`);
      removeFolder();
    },
  };
}

/** Workers outlive the server that started them, as they should; those of a test end with its folder. */
export function killInstances(data: string): void {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const environment =
        readFileSync(`/proc/${pid}/cmdline`, 'utf8') + readFileSync(`/proc/${pid}/environ`, 'utf8');
      if (environment.includes(`${data}/instances/`)) process.kill(Number(pid), 'SIGKILL');
    } catch {
      // It ended meanwhile, or this user may not read it.
    }
  }
}

function administratorUrl(): string {
  const url = process.env['BERTH_TEST_DATABASE_URL'];
  if (url === undefined)
    throw new Error(
      'run the tests with "npm test", which starts a PostgreSQL, or set BERTH_TEST_DATABASE_URL',
    );
  return url;
}

async function asAdministrator(statement: string): Promise<void> {
  const client = new Client({ connectionString: administratorUrl() });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
