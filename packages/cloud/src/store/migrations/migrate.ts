import { BerthError } from '../../support/errors.ts';
import type { Database } from '../database.ts';
import { migrations } from './migrations.ts';
import { execute, raw, byDialect, row, sql } from '../sql.ts';
import type { Dialect, Steps } from '../sql.ts';
import type { Migration } from './migration.ts';

/**
 * Servers that start together take turns: PostgreSQL waits for this lock until the transaction ends, SQLite
 * needs none.
 */
const migrationLock = byDialect({ sqlite: 'select 1', postgres: 'select pg_advisory_xact_lock(8484001)' });

/** The one word in which the schema differs: a number that the database itself counts up. */
const identity: Record<Dialect, string> = {
  sqlite: 'integer primary key autoincrement',
  postgres: 'bigint generated always as identity primary key',
};

/**
 * Brings the schema up to date, or refuses a database that a newer Berth has written. Answers how many steps
 * it ran.
 */
export async function migrate(database: Database, steps: Migration[] = migrations): Promise<number> {
  return database.write(() => applyMigrations(database.dialect, steps));
}

/** Rejects where a newer Berth has changed the schema meanwhile: this one may read it wrong. */
export async function checkSchema(database: Database, steps: Migration[] = migrations): Promise<void> {
  const found = await database.read(() => row<{ version: number }>(sql`select version from schema_version`));
  if ((found?.version ?? 0) > steps.length)
    throw new BerthError(
      'state',
      `a newer Berth has upgraded this database (its schema is ${found?.version}, this server knows ${steps.length}); upgrade this server`,
    );
}

/** The same as steps of a transaction. */
export function* applyMigrations(dialect: Dialect, steps: Migration[]): Steps<number> {
  yield sql`${migrationLock}`;
  yield sql`create table if not exists schema_version (version integer not null)`;
  const found = yield* row<{ version: number }>(sql`select version from schema_version`);
  const version = found?.version ?? 0;
  if (version > steps.length) {
    throw new BerthError(
      'unavailable',
      `this database was written by a newer Berth (its schema is ${version}, this one knows ${steps.length}); start that version, or restore a backup from before the upgrade`,
    );
  }
  for (const step of steps.slice(version)) {
    for (const statement of step.statements)
      yield raw(
        (typeof statement === 'string' ? statement : statement[dialect]).replace(
          identity.postgres,
          identity[dialect],
        ),
      );
  }
  if (found === undefined) yield* execute(sql`insert into schema_version (version) values (${steps.length})`);
  else if (version < steps.length) yield* execute(sql`update schema_version set version = ${steps.length}`);
  return steps.length - version;
}
