import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync, chmodSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { freePort } from '../../../../testing/src/free-port.ts';
import { createTestDatabase } from '../../../../testing/src/test-database.ts';
import { waitFor } from '../../../../testing/src/wait-for.ts';
import { openPostgres } from './open-database.ts';

const PROGRAM = ['/usr/sbin/pgbouncer', '/usr/bin/pgbouncer'].find((path) => existsSync(path));

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

for (const mode of ['session', 'transaction'])
  for (const ignore of ['extra_float_digits', 'extra_float_digits,options'])
    test(`PgBouncer is refused at the start, in ${mode} mode, ignoring ${ignore}`, {
      skip: PROGRAM === undefined && 'pgbouncer is not installed',
    }, async (t) => {
      const database = await createTestDatabase('postgres');
      t.after(() => database.drop());
      const { hostname, port, username, password, pathname } = new URL(database.url);
      const folder = mkdtempSync(join(tmpdir(), 'berth-pgbouncer-'));
      t.after(() => rmSync(folder, { recursive: true, force: true }));
      chmodSync(folder, 0o755);
      const listen = await freePort();
      writeFileSync(
        join(folder, 'pgbouncer.ini'),
        `[databases]
* = host=${hostname} port=${port} user=${username} password=${password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${listen}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
ignore_startup_parameters = ${ignore}
`,
      );
      // It does not run as root.
      const asRoot = process.getuid?.() === 0 ? ['-u', 'nobody'] : [];
      const pooler = spawn(PROGRAM ?? '', ['-q', ...asRoot, join(folder, 'pgbouncer.ini')], {
        stdio: 'ignore',
      });
      const ended = once(pooler, 'exit');
      t.after(async () => {
        pooler.kill('SIGKILL');
        await ended;
      });
      await waitFor('it listens', () => answers(listen));
      const errors: Error[] = [];
      await assert.rejects(
        openPostgres({
          url: `postgres://${username}:${password}@127.0.0.1:${listen}${pathname}`,
          poolSize: 4,
          onError: (error) => void errors.push(error),
        }),
        /connection pooler such as PgBouncer/,
      );
    });
