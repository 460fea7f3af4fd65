import type { Sealer } from '../../support/crypto.ts';
import type { Database } from '../database.ts';
import type { Secret } from '../../domain/records.ts';
import { assignments, execute, join, row, rows, rowValues, sql } from '../sql.ts';
import type { Row } from '../sql.ts';
import type { SecretStore } from '../store.ts';
import { recordAudit } from './audit-log.table.ts';
import { forUpdate, removeOwned } from './owned-table.ts';

const PUBLIC_COLUMNS = sql`id, account_id, name, description, created_at, updated_at, value_updated_at`;

/** The value is sealed on the way in, and leaves only through `values`. */
export function secretTable(database: Database, sealer: Sealer): SecretStore {
  const sealed = (secret: Secret, value: string): string => sealer.seal(value, `secret ${secret.id}`);
  return {
    insert: (secret, value, audit) =>
      database.write(function* () {
        yield* execute(
          sql`insert into secrets ${rowValues({ ...toRow(secret), sealed_value: sealed(secret, value) })}`,
        );
        yield* recordAudit(audit);
      }),

    find: (accountId, id) =>
      database.read(function* () {
        const found = yield* row<Row>(
          sql`select ${PUBLIC_COLUMNS} from secrets where id = ${id} and account_id = ${accountId}`,
        );
        return found === undefined ? undefined : fromRow(found);
      }),

    list: (accountId) =>
      database.read(function* () {
        const found = yield* rows<Row>(
          sql`select ${PUBLIC_COLUMNS} from secrets where account_id = ${accountId} order by created_at desc, id desc`,
        );
        return found.map(fromRow);
      }),

    change: (accountId, id, next) =>
      database.write(function* () {
        const found = yield* row<Row>(
          sql`select ${PUBLIC_COLUMNS} from secrets where id = ${id} and account_id = ${accountId}${forUpdate}`,
        );
        if (found === undefined) return undefined;
        const { record, audit, value } = next(fromRow(found));
        const values: Row =
          value === undefined ? toRow(record) : { ...toRow(record), sealed_value: sealed(record, value) };
        yield* execute(sql`update secrets set ${assignments(values)} where id = ${id}`);
        yield* recordAudit(audit);
        return record;
      }),

    remove: (accountId, id, audit) => database.write(() => removeOwned('secrets', accountId, id, audit)),

    findValues: (accountId, names) =>
      database.read(function* () {
        if (names.length === 0) return new Map<string, string>();
        const wanted = join(
          names.map((name) => sql`${name}`),
          ', ',
        );
        const found = yield* rows<{ id: string; name: string; sealed_value: string }>(
          sql`select id, name, sealed_value from secrets where account_id = ${accountId} and name in (${wanted})`,
        );
        return new Map(
          found.map((secret) => [secret.name, sealer.open(secret.sealed_value, `secret ${secret.id}`)]),
        );
      }),
  };
}

function toRow(secret: Secret): Row {
  return {
    id: secret.id,
    account_id: secret.accountId,
    name: secret.name,
    description: secret.description,
    created_at: secret.createdAt,
    updated_at: secret.updatedAt,
    value_updated_at: secret.valueUpdatedAt,
  };
}

function fromRow(found: Row): Secret {
  return {
    id: String(found['id']),
    accountId: String(found['account_id']),
    name: String(found['name']),
    description: found['description'] as string | null,
    createdAt: Number(found['created_at']),
    updatedAt: Number(found['updated_at']),
    valueUpdatedAt: Number(found['value_updated_at']),
  };
}
