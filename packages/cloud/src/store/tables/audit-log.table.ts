import type { Database } from '../database.ts';
import type { AuditEntry } from '../../domain/records.ts';
import { execute, rows, rowValues, sql } from '../sql.ts';
import type { Row, Steps } from '../sql.ts';
import type { AuditStore } from '../store.ts';

/** Written inside the transaction of the change that it tells of: there is never one without the other. */
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
  action: string;
  resource: string;
  resource_id: string;
  changes: string;
}

export function auditLogTable(database: Database): AuditStore {
  return {
    record: (entry) => database.write(() => recordAudit(entry)),
    list: (accountId, { limit, before }) =>
      database.read(function* () {
        const older = before === undefined ? sql`` : sql` and id < ${before}`;
        const found = yield* rows<AuditRow>(
          sql`select * from audit_log where account_id = ${accountId}${older} order by id desc limit ${limit}`,
        );
        return found.map((entry) => ({
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
        }));
      }),
  };
}
