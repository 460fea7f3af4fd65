import type { ApiKey } from '../../domain/records.ts';
import { SESSION_IDLE_MS } from '../../domain/session.ts';
import type { Session } from '../../domain/session.ts';
import type { Database } from '../database.ts';
import type { SessionStore } from '../session-store.ts';
import { execute, row, rows, rowValues, sql } from '../sql.ts';
import type { Row, Steps } from '../sql.ts';
import { keyFromRow } from './api-keys.table.ts';
import { recordAudit } from './audit-log.table.ts';
import { removeOwned, saveLastUsed } from './owned-table.ts';

export function sessionTable(database: Database): SessionStore {
  return {
    insert: (session, audit) =>
      database.write(function* () {
        const now = session.createdAt;
        yield* execute(
          sql`delete from sessions where expires_at <= ${now} or last_used_at <= ${now - SESSION_IDLE_MS}`,
        );
        yield* execute(sql`delete from sign_in_links where expires_at <= ${now}`);
        yield* execute(sql`insert into sessions ${rowValues(toRow(session))}`);
        yield* recordAudit(audit);
      }),

    findByHash: (hash) =>
      database.read(function* () {
        const found = yield* row<Row>(sql`select * from sessions where hash = ${hash}`);
        if (found === undefined) return undefined;
        const key = yield* activeKey(String(found['key_id']));
        return key && { session: fromRow(found), key };
      }),

    list: (accountId, now) =>
      database.read(function* () {
        const found = yield* rows<Row>(
          sql`select * from sessions where account_id = ${accountId} and expires_at > ${now}
            and last_used_at > ${now - SESSION_IDLE_MS} order by created_at desc, id desc`,
        );
        return found.map(fromRow);
      }),

    remove: (accountId, id, audit) => database.write(() => removeOwned('sessions', accountId, id, audit)),

    saveLastUsed: (lastUsed) => database.write(() => saveLastUsed('sessions', lastUsed)),

    insertLink: ({ hash, accountId, keyId, expiresAt }) =>
      database.write(function* () {
        yield* execute(
          sql`insert into sign_in_links
            ${rowValues({ hash, account_id: accountId, key_id: keyId, expires_at: expiresAt })}`,
        );
      }),

    takeLink: (hash, now) =>
      database.write(function* () {
        const found = yield* row<Row>(sql`select * from sign_in_links where hash = ${hash}`);
        // Of two who open it at once, one deletes the row.
        const removed = yield* execute(sql`delete from sign_in_links where hash = ${hash}`);
        if (found === undefined || removed === 0 || Number(found['expires_at']) <= now) return undefined;
        return yield* activeKey(String(found['key_id']));
      }),
  };
}

function* activeKey(id: string): Steps<ApiKey | undefined> {
  const found = yield* row<Row>(
    sql`select * from api_keys where id = ${id} and account_id in (select id from accounts where status = 'active')`,
  );
  return found === undefined ? undefined : keyFromRow(found);
}

function toRow(session: Session): Row {
  return {
    id: session.id,
    account_id: session.accountId,
    key_id: session.keyId,
    hash: session.hash,
    user_agent: session.userAgent,
    created_at: session.createdAt,
    last_used_at: session.lastUsedAt,
    expires_at: session.expiresAt,
  };
}

function fromRow(found: Row): Session {
  return {
    id: String(found['id']),
    accountId: String(found['account_id']),
    keyId: String(found['key_id']),
    hash: String(found['hash']),
    userAgent: String(found['user_agent']),
    createdAt: Number(found['created_at']),
    lastUsedAt: Number(found['last_used_at']),
    expiresAt: Number(found['expires_at']),
  };
}
