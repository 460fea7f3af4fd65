import type { Sealer } from '../../support/crypto.ts';
import type { Database } from '../database.ts';
import type { S3Key } from '../../domain/records.ts';
import { execute, row, rows, rowValues, sql } from '../sql.ts';
import type { Row } from '../sql.ts';
import type { S3KeyStore } from '../store.ts';
import { recordAudit } from './audit-log.table.ts';
import { removeOwned, saveLastUsed } from './owned-table.ts';

/** The secret is sealed on the way in, and leaves only through `open`. */
export function s3KeyTable(database: Database, sealer: Sealer): S3KeyStore {
  const contextOf = (id: string): string => `s3 key ${id}`;
  return {
    insert: (key, secret, audit) =>
      database.write(function* () {
        yield* execute(
          sql`insert into s3_keys
            ${rowValues({ ...toRow(key), sealed_secret: sealer.seal(secret, contextOf(key.id)) })}`,
        );
        yield* recordAudit(audit);
      }),

    list: (accountId) =>
      database.read(function* () {
        const found = yield* rows<Row>(
          sql`select * from s3_keys where account_id = ${accountId} order by created_at desc, id desc`,
        );
        return found.map(fromRow);
      }),

    findWithSecret: (id) =>
      database.read(function* () {
        const found = yield* row<Row>(
          sql`select * from s3_keys where id = ${id}
            and account_id in (select id from accounts where status = 'active')`,
        );
        return found === undefined
          ? undefined
          : { key: fromRow(found), secret: sealer.open(String(found['sealed_secret']), contextOf(id)) };
      }),

    remove: (accountId, id, audit) => database.write(() => removeOwned('s3_keys', accountId, id, audit)),

    saveLastUsed: (lastUsed) => database.write(() => saveLastUsed('s3_keys', lastUsed)),
  };
}

function toRow(key: S3Key): Row {
  return {
    id: key.id,
    account_id: key.accountId,
    name: key.name,
    access: key.access,
    created_at: key.createdAt,
    last_used_at: key.lastUsedAt,
    expires_at: key.expiresAt,
  };
}

function fromRow(found: Row): S3Key {
  return {
    id: String(found['id']),
    accountId: String(found['account_id']),
    name: String(found['name']),
    access: found['access'] as S3Key['access'],
    createdAt: Number(found['created_at']),
    lastUsedAt: found['last_used_at'] as number | null,
    expiresAt: found['expires_at'] as number | null,
  };
}
