import type { Database } from '../database.ts';
import type { Account } from '../../domain/records.ts';
import { execute, row, rows, rowValues, sql } from '../sql.ts';
import type { Row } from '../sql.ts';
import type { AccountStore } from '../store.ts';
import { recordAudit } from './audit-log.table.ts';
import { keyToRow } from './api-keys.table.ts';
import { forUpdate } from './owned-table.ts';

export function accountTable(database: Database): AccountStore {
  return {
    insert: (account, firstKey, audit) =>
      database.write(function* () {
        yield* execute(sql`insert into accounts ${rowValues(toRow(account))}`);
        yield* execute(sql`insert into api_keys ${rowValues(keyToRow(firstKey))}`);
        yield* recordAudit(audit);
      }),

    find: (id) =>
      database.read(function* () {
        const found = yield* row<Row>(sql`select * from accounts where id = ${id}`);
        return found === undefined ? undefined : fromRow(found);
      }),

    list: () =>
      database.read(function* () {
        return (yield* rows<Row>(sql`select * from accounts order by created_at, id`)).map(fromRow);
      }),

    changeSshKeys: (id, next) =>
      database.write(function* () {
        const found = yield* row<Row>(sql`select * from accounts where id = ${id}${forUpdate}`);
        if (found === undefined) return undefined;
        const account = fromRow(found);
        const { keys, audit } = next(account.sshKeys);
        yield* execute(sql`update accounts set ssh_keys = ${JSON.stringify(keys)} where id = ${id}`);
        yield* recordAudit(audit);
        return { ...account, sshKeys: keys };
      }),
  };
}

function toRow(account: Account): Row {
  return {
    id: account.id,
    name: account.name,
    ssh_keys: JSON.stringify(account.sshKeys),
    created_at: account.createdAt,
  };
}

function fromRow(found: Row): Account {
  return {
    id: String(found['id']),
    name: String(found['name']),
    sshKeys: JSON.parse(String(found['ssh_keys'])) as string[],
    createdAt: Number(found['created_at']),
  };
}
