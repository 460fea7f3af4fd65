import type { Database } from '../database.ts';
import type { AuditEntry, OwnedRecord, PageRequest } from '../../domain/records.ts';
import { assignments, execute, raw, byDialect, row, rows, rowValues, sql } from '../sql.ts';
import type { Row, Statement, Steps } from '../sql.ts';
import { recordAudit } from './audit-log.table.ts';
import type { Collection } from '../collection.ts';

/** How records of one kind lie in their table. */
export interface OwnedTable<T extends OwnedRecord> {
  table: string;
  toRow(record: T): Row;
  fromRow(row: Row): T;
  /** Rows that a list shows; all of them if not said. */
  listFilter?: Statement;
  /** What else a removal must change, in the same transaction. */
  onRemove?(accountId: string, id: string, at: number): Steps<void>;
  /** What else must follow when a record is made or changed, in the same transaction. */
  onWrite?(record: T, at: number): Steps<void>;
}

/**
 * Keeps a row from being changed by another transaction until this one ends. SQLite has one writer at a time
 * anyway.
 */
export const forUpdate: Statement = byDialect({ sqlite: '', postgres: ' for update' });
/** Keeps a row from being changed or removed until this transaction ends; others may hold it as well. */
export const forShare: Statement = byDialect({ sqlite: '', postgres: ' for share' });

/** The operations that every kind of owned thing has, over any table. */
export function ownedTable<T extends OwnedRecord>(
  database: Database,
  { table, toRow, fromRow, listFilter, onRemove, onWrite }: OwnedTable<T>,
): Collection<T> {
  const from = raw(table);
  const filtered = listFilter === undefined ? sql`` : sql` and ${listFilter}`;
  return {
    insert: (record, audit) =>
      database.write(function* () {
        yield* execute(sql`insert into ${from} ${rowValues(toRow(record))}`);
        yield* recordAudit(audit);
        if (onWrite !== undefined) yield* onWrite(record, audit.at);
      }),

    find: (accountId, id) =>
      database.read(function* () {
        const found = yield* row<Row>(
          sql`select * from ${from} where id = ${id} and account_id = ${accountId}`,
        );
        return found === undefined ? undefined : fromRow(found);
      }),

    list: (accountId, page) =>
      database.read(function* () {
        const found = yield* rows<Row>(
          sql`select * from ${from} where account_id = ${accountId}${filtered}${older(page)}
            order by created_at desc, id desc${limit(page)}`,
        );
        return found.map(fromRow);
      }),

    change: (accountId, id, next) =>
      database.write(function* () {
        const found = yield* row<Row>(
          sql`select * from ${from} where id = ${id} and account_id = ${accountId}${forUpdate}`,
        );
        if (found === undefined) return undefined;
        const { record, audit } = next(fromRow(found));
        yield* execute(sql`update ${from} set ${assignments(toRow(record))} where id = ${id}`);
        yield* recordAudit(audit);
        if (onWrite !== undefined) yield* onWrite(record, audit.at);
        return record;
      }),

    remove: (accountId, id, audit) =>
      database.write(function* () {
        if (!(yield* removeOwned(table, accountId, id, audit))) return false;
        if (onRemove !== undefined) yield* onRemove(accountId, id, audit.at);
        return true;
      }),
  };
}

/** Removes a record of this account, with its audit entry; false if the account has none with this id. */
export function* removeOwned(
  table: string,
  accountId: string,
  id: string,
  audit: AuditEntry,
): Steps<boolean> {
  const removed = yield* execute(
    sql`delete from ${raw(table)} where id = ${id} and account_id = ${accountId}`,
  );
  if (removed === 0) return false;
  yield* recordAudit(audit);
  return true;
}

/** Stores when each of these records was last used. */
export function* saveLastUsed(table: string, lastUsed: ReadonlyMap<string, number>): Steps<void> {
  for (const [id, at] of lastUsed)
    yield* execute(sql`update ${raw(table)} set last_used_at = ${at} where id = ${id}`);
}

function older(page: PageRequest | undefined): Statement {
  if (page?.after === undefined) return sql``;
  return sql` and (created_at, id) < (${page.after.createdAt}, ${page.after.id})`;
}

function limit(page: PageRequest | undefined): Statement {
  return page === undefined ? sql`` : sql` limit ${page.limit}`;
}

/** Booleans are kept as 0 and 1. */
export function toFlag(value: boolean): number {
  return value ? 1 : 0;
}
