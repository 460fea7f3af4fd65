import type { Database } from '../database.ts';
import type { QuotaLimits } from '../../domain/quotas.ts';
import type { Account, AccountStatus } from '../../domain/records.ts';
import { assignments, execute, raw, row, rows, rowValues, sql } from '../sql.ts';
import type { Row } from '../sql.ts';
import type { AccountStore } from '../store.ts';
import { recordAudit } from './audit-log.table.ts';
import { keyToRow } from './api-keys.table.ts';
import { forUpdate } from './owned-table.ts';

/** What goes with an account's row. Usage and the audit log stay: they are the operator's records. */
const OWNED_TABLES = [
  'api_keys',
  's3_keys',
  'templates',
  'registries',
  'registry_delegations',
  'secrets',
  'network_volumes',
  'pods',
  'clusters',
  'flash_environments',
  'flash_builds',
  'flash_apps',
  'repo_models',
  'webhook_deliveries',
];

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

    change: (id, next) =>
      database.write(function* () {
        const found = yield* row<Row>(sql`select * from accounts where id = ${id}${forUpdate}`);
        if (found === undefined) return undefined;
        const { record, audit } = next(fromRow(found));
        yield* execute(sql`update accounts set ${assignments(toRow(record))} where id = ${id}`);
        yield* recordAudit(audit);
        return record;
      }),

    remove: (id) =>
      database.write(function* () {
        const [unsettled] = yield* rows<Row>(
          sql`select id from pods where account_id = ${id} and (settled = 0 or wanted <> 'terminated') limit 1`,
        );
        const [endpoint] = yield* rows<Row>(sql`select id from endpoints where account_id = ${id} limit 1`);
        if (unsettled !== undefined || endpoint !== undefined) return false;
        for (const table of OWNED_TABLES)
          yield* execute(sql`delete from ${raw(table)} where account_id = ${id}`);
        yield* execute(sql`delete from accounts where id = ${id}`);
        return true;
      }),
  };
}

function toRow(account: Account): Row {
  return {
    id: account.id,
    name: account.name,
    ssh_keys: JSON.stringify(account.sshKeys),
    limits: JSON.stringify(account.limits),
    status: account.status,
    spend_warned: account.spendWarned,
    created_at: account.createdAt,
  };
}

function fromRow(found: Row): Account {
  return {
    id: String(found['id']),
    name: String(found['name']),
    sshKeys: JSON.parse(String(found['ssh_keys'])) as string[],
    limits: JSON.parse(String(found['limits'])) as QuotaLimits,
    status: found['status'] as AccountStatus,
    spendWarned: found['spend_warned'] as string | null,
    createdAt: Number(found['created_at']),
  };
}
