import type { Database } from '../database.ts';
import type { AccessLevel, ApiKey, Scopes } from '../../domain/records.ts';
import { row, sql } from '../sql.ts';
import type { Row, Statement } from '../sql.ts';
import type { ApiKeyStore } from '../store.ts';
import { ownedTable, saveLastUsed, toFlag } from './owned-table.ts';

export function apiKeyTable(database: Database): ApiKeyStore {
  const findOne = (where: Statement): Promise<ApiKey | undefined> =>
    database.read(function* () {
      const found = yield* row<Row>(sql`select * from api_keys where ${where}`);
      return found === undefined ? undefined : keyFromRow(found);
    });
  return {
    ...ownedTable(database, { table: 'api_keys', toRow: keyToRow, fromRow: keyFromRow }),
    // The keys of an account that is not active are not found.
    findByHash: (hash) =>
      findOne(sql`hash = ${hash} and account_id in (select id from accounts where status = 'active')`),
    findInAnyAccount: (id) => findOne(sql`id = ${id}`),
    findRoot: () => findOne(sql`root = 1`),
    saveLastUsed: (lastUsed) => database.write(() => saveLastUsed('api_keys', lastUsed)),
  };
}

export function keyToRow(key: ApiKey): Row {
  return {
    id: key.id,
    account_id: key.accountId,
    name: key.name,
    hash: key.hash,
    access: key.access,
    scopes: JSON.stringify(key.scopes),
    endpoints: key.endpoints === null ? null : JSON.stringify(key.endpoints),
    enabled: toFlag(key.enabled),
    root: toFlag(key.root),
    created_at: key.createdAt,
    last_used_at: key.lastUsedAt,
    expires_at: key.expiresAt,
  };
}

export function keyFromRow(found: Row): ApiKey {
  const endpoints = found['endpoints'] as string | null;
  return {
    id: String(found['id']),
    accountId: String(found['account_id']),
    name: String(found['name']),
    hash: String(found['hash']),
    access: found['access'] as AccessLevel,
    scopes: JSON.parse(String(found['scopes'])) as Scopes,
    endpoints: endpoints === null ? null : (JSON.parse(endpoints) as string[]),
    enabled: found['enabled'] === 1,
    root: found['root'] === 1,
    createdAt: Number(found['created_at']),
    lastUsedAt: found['last_used_at'] as number | null,
    expiresAt: found['expires_at'] as number | null,
  };
}
