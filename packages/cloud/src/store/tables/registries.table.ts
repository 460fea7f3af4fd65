import type { Sealer } from '../../support/crypto.ts';
import { BerthError } from '../../support/errors.ts';
import type { Database } from '../database.ts';
import type { Registry, RegistryDelegation } from '../../domain/records.ts';
import { execute, join, row, rows, sql } from '../sql.ts';
import type { Steps } from '../sql.ts';
import { ownedTable, forShare } from './owned-table.ts';
import type { Collection } from '../collection.ts';

export function registryTable(database: Database, sealer: Sealer): Collection<Registry> {
  return ownedTable(database, {
    table: 'registries',
    toRow: (registry) => ({
      id: registry.id,
      account_id: registry.accountId,
      name: registry.name,
      sealed_username: sealer.seal(registry.username, `registry ${registry.id} username`),
      sealed_password: sealer.seal(registry.password, `registry ${registry.id} password`),
      created_at: registry.createdAt,
    }),
    fromRow: (found) => ({
      id: String(found['id']),
      accountId: String(found['account_id']),
      name: String(found['name']),
      username: sealer.open(String(found['sealed_username']), `registry ${found['id']} username`),
      password: sealer.open(String(found['sealed_password']), `registry ${found['id']} password`),
      createdAt: Number(found['created_at']),
    }),
    // A pod keeps them from going. Templates and endpoints lose the reference; their images are then pulled
    // without credentials.
    *onRemove(accountId, id) {
      const pod = yield* row<{ id: string; name: string }>(
        sql`select id, name from pods where registry_id = ${id} and account_id = ${accountId}
          and wanted <> 'terminated' limit 1`,
      );
      if (pod !== undefined)
        throw new BerthError(
          'in-use',
          `pod ${JSON.stringify(pod.name)} (${pod.id}) uses these credentials; give it others, or terminate it first`,
        );
      for (const table of [sql`templates`, sql`endpoints`])
        yield* execute(
          sql`update ${table} set registry_id = null where account_id = ${accountId} and registry_id = ${id}`,
        );
    },
  });
}

/** Those of them that the account has. */
export function* lockRegistries(accountId: string, ids: readonly string[] = []): Steps<string[]> {
  if (ids.length === 0) return [];
  const wanted = join(
    ids.map((id) => sql`${id}`),
    ', ',
  );
  return (yield* rows<{ id: string }>(
    sql`select id from registries where account_id = ${accountId} and id in (${wanted}) order by id${forShare}`,
  )).map(({ id }) => id);
}

export function registryDelegationTable(database: Database): Collection<RegistryDelegation> {
  return ownedTable(database, {
    table: 'registry_delegations',
    toRow: (delegation) => ({
      id: delegation.id,
      account_id: delegation.accountId,
      name: delegation.name,
      aws_user: delegation.awsUser,
      aws_region: delegation.awsRegion,
      repository: delegation.repository,
      tag: delegation.tag,
      created_at: delegation.createdAt,
    }),
    fromRow: (found) => ({
      id: String(found['id']),
      accountId: String(found['account_id']),
      name: found['name'] as string | null,
      awsUser: String(found['aws_user']),
      awsRegion: String(found['aws_region']),
      repository: String(found['repository']),
      tag: String(found['tag']),
      createdAt: Number(found['created_at']),
    }),
  });
}
