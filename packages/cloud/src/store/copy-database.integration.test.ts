import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { createTestDatabase } from '../../../testing/src/test-database.ts';
import { migrate } from './migrations/migrate.ts';
import { migrations } from './migrations/migrations.ts';
import { openDatabase } from './open-store.ts';
import { restorePostgres } from './postgres/restore-database.ts';
import { execute, rows, sql } from './sql.ts';
import type { Row } from './sql.ts';
import { checkSqliteCopy, SQLITE_FILE } from './sqlite/copy-database.ts';

const options = { poolSize: 3, onError: assert.fail };

test('a PostgreSQL copy of an older Berth is restored with its schema; the next start upgrades it', async (t) => {
  const [from, to] = [
    await createTestDatabase('postgres', { empty: true }),
    await createTestDatabase('postgres', { empty: true }),
  ];
  const folder = mkdtempSync(join(tmpdir(), 'berth-copy-'));
  const source = await openDatabase({ ...options, database: from.url, data: from.data });
  const target = await openDatabase({ ...options, database: to.url, data: to.data });
  t.after(async () => {
    await source.close();
    await target.close();
    await from.drop();
    await to.drop();
    rmSync(folder, { recursive: true });
  });
  const older = migrations.length - 1;
  await migrate(source, migrations.slice(0, older));
  const odd = 'a "quote", a \\ backslash, a\nline, ☃ and \u{1F600}';
  await source.write(function* () {
    yield* execute(
      sql`insert into accounts (id, name, ssh_keys, created_at) values ('a', ${odd}, '[]', 9007199254740991)`,
    );
    for (let n = 0; n < 5_000; n += 1)
      yield* execute(
        sql`insert into audit_log (at, account_id, interface, request_id, action, resource, resource_id, changes)
          values (${n}, 'a', 'x', 'r', 'create', 'pod', ${`p${n}`}, '[]')`,
      );
  });
  const all = (database: typeof source, table: string): Promise<Row[]> =>
    database.read(() => rows<Row>({ parts: [`select * from ${table} order by 1`], values: [] }));
  assert.equal(await source.copyTo(folder), older);
  await restorePostgres(target, folder, { replace: false });
  for (const table of ['accounts', 'audit_log', 'schema_version'])
    assert.deepEqual(await all(target, table), await all(source, table));
  await assert.rejects(restorePostgres(target, folder, { replace: false }), /the database is not empty/);
  await restorePostgres(target, folder, { replace: true });
  assert.equal(await migrate(target), 1);
  // The next number follows the restored ones.
  await target.write(function* () {
    yield* execute(
      sql`insert into audit_log (at, account_id, interface, request_id, action, resource, resource_id, changes)
        values (1, 'a', 'x', 'r', 'create', 'pod', 'next', '[]')`,
    );
  });
  assert.equal((await all(target, 'audit_log')).at(-1)?.['resource_id'], 'next');
});

test('a copy of SQLite by a newer Berth, or with a damaged page, is refused', async (t) => {
  const place = await createTestDatabase('sqlite');
  const database = await openDatabase({ ...options, database: '', data: place.data });
  t.after(() => place.drop());
  await migrate(database);
  const folder = join(place.data, 'copy');
  await database.copyTo(folder);
  await database.close();
  const file = join(folder, SQLITE_FILE);
  checkSqliteCopy(file);
  const copy = new DatabaseSync(file);
  copy.exec('update schema_version set version = 999');
  copy.close();
  assert.throws(() => checkSqliteCopy(file), /written by a newer Berth \(its schema is 999/);
});
