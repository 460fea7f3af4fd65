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

/** Rejects where a newer Berth has changed the schema meanwhile so that this one may read it wrong. */
export async function checkSchema(database: Database, steps: Migration[] = migrations): Promise<void> {
  const found = await database.read(readSchemaVersion);
  if (found !== undefined && isTooNew(found, steps))
    throw new BerthError(
      'state',
      `a newer Berth has upgraded this database (its schema is ${found?.version}, this server knows ` +
        `${steps.length}); upgrade this server`,
    );
}

interface SchemaVersion {
  /** How many steps have been applied. */
  version: number;
  /** How many of them a server must know to work on this schema. Databases of earlier versions lack it. */
  minimum_version?: number;
}

function* readSchemaVersion(): Steps<SchemaVersion | undefined> {
  return yield* row<SchemaVersion>(sql`select * from schema_version`);
}

function isTooNew({ version, minimum_version = version }: SchemaVersion, steps: Migration[]): boolean {
  return version > steps.length && minimum_version > steps.length;
}

/** The steps up to the last one that servers of the version before cannot work with. */
function minimumVersion(steps: Migration[]): number {
  return steps.findLastIndex(({ expandsOnly }) => expandsOnly !== true) + 1;
}

/** The same as steps of a transaction. */
export function* applyMigrations(dialect: Dialect, steps: Migration[]): Steps<number> {
  yield sql`${migrationLock}`;
  yield sql`create table if not exists schema_version (version integer not null, minimum_version integer not null)`;
  const found = yield* readSchemaVersion();
  const version = found?.version ?? 0;
  if (found !== undefined && isTooNew(found, steps)) {
    throw new BerthError(
      'unavailable',
      `this database was written by a newer Berth (its schema is ${version}, this one knows ` +
        `${steps.length}); start that version, or restore a backup from before the upgrade`,
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
  if (found !== undefined && found.minimum_version === undefined)
    yield sql`alter table schema_version add column minimum_version integer not null default 0`;
  const minimum = minimumVersion(steps);
  if (found === undefined)
    yield* execute(
      sql`insert into schema_version (version, minimum_version) values (${steps.length}, ${minimum})`,
    );
  else if (version < steps.length || (version === steps.length && found.minimum_version !== minimum))
    yield* execute(sql`update schema_version set version = ${steps.length}, minimum_version = ${minimum}`);
  return Math.max(0, steps.length - version);
}
