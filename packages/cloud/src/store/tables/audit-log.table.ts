import type { Database } from '../database.ts';
import type { AuditedAction, AuditedResource } from '../../domain/audit.ts';
import type { AuditEntry } from '../../domain/records.ts';
import { execute, join, row, rows, rowValues, sql } from '../sql.ts';
import type { Row, Statement, Steps } from '../sql.ts';
import type { AuditFilter, AuditStore } from '../store.ts';

/** Written inside the transaction of the change that it records: there is never one without the other. */
export function* recordAudit(entry: AuditEntry): Steps<void> {
  const values: Row = {
    at: entry.at,
    account_id: entry.accountId,
    key_id: entry.keyId,
    interface: entry.interface,
    request_id: entry.requestId,
    action: entry.action,
    resource: entry.resource,
    resource_id: entry.resourceId,
    changes: JSON.stringify(entry.changes),
  };
  yield* execute(sql`insert into audit_log ${rowValues(values)}`);
}

interface AuditRow {
  id: number;
  at: number;
  account_id: string;
  key_id: string | null;
  interface: string;
  request_id: string;
  action: AuditedAction;
  resource: AuditedResource;
  resource_id: string;
  changes: string;
}

/** Rows that one search reads at most: a rare match in a long log must not hold the database up. */
const MAX_SCANNED_ROWS = 20_000;

export function auditLogTable(database: Database): AuditStore {
  return {
    record: (entry) => database.write(() => recordAudit(entry)),
    list: (accountId, { limit, before }) =>
      database.read(function* () {
        const older = before === undefined ? sql`` : sql` and id < ${before}`;
        const found = yield* rows<AuditRow>(
          sql`select * from audit_log where account_id = ${accountId}${older} order by id desc limit ${limit}`,
        );
        return found.map(fromRow);
      }),
    search: (filter, { limit, before }, maxScanned = MAX_SCANNED_ROWS) =>
      database.read(function* () {
        const scope = conditions([
          filter.accountId === undefined ? undefined : sql`account_id = ${filter.accountId}`,
          before === undefined ? undefined : sql`id < ${before}`,
        ]);
        const found = yield* rows<AuditRow & { key_name: string | null }>(
          sql`select scanned.*, api_keys.name as key_name
            from (select * from audit_log ${scope} order by id desc limit ${maxScanned}) as scanned
            left join api_keys on api_keys.id = scanned.key_id
            ${conditions(filterConditions(filter))} order by scanned.id desc limit ${limit + 1}`,
        );
        const entries = found
          .slice(0, limit)
          .map((entry) => ({ ...fromRow(entry), keyName: entry.key_name }));
        if (found.length > limit) return { entries, before: entries.at(-1)?.id };
        const lastScanned = yield* row<{ id: number }>(
          sql`select id from audit_log ${scope} order by id desc limit 1 offset ${maxScanned - 1}`,
        );
        return { entries, before: lastScanned?.id };
      }),
  };
}

function filterConditions(filter: AuditFilter): (Statement | undefined)[] {
  const { keyId, action, resource, resourceId, from, to } = filter;
  return [
    keyId === undefined
      ? undefined
      : keyId === null
        ? sql`scanned.key_id is null`
        : sql`scanned.key_id = ${keyId}`,
    action === undefined ? undefined : sql`scanned.action = ${action}`,
    resource === undefined ? undefined : sql`scanned.resource = ${resource}`,
    resourceId === undefined ? undefined : sql`scanned.resource_id = ${resourceId}`,
    from === undefined ? undefined : sql`scanned.at >= ${from}`,
    to === undefined ? undefined : sql`scanned.at < ${to}`,
  ];
}

function conditions(parts: readonly (Statement | undefined)[]): Statement {
  const given = parts.filter((part) => part !== undefined);
  return given.length === 0 ? sql`` : sql`where ${join(given, ' and ')}`;
}

function fromRow(entry: AuditRow): AuditEntry & { id: number } {
  return {
    id: entry.id,
    at: entry.at,
    accountId: entry.account_id,
    keyId: entry.key_id,
    interface: entry.interface,
    requestId: entry.request_id,
    action: entry.action,
    resource: entry.resource,
    resourceId: entry.resource_id,
    changes: JSON.parse(entry.changes) as AuditEntry['changes'],
  };
}
