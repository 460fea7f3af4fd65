import type { Database } from '../database.ts';
import type { FlashStore } from '../flash-store.ts';
import { ownedTable } from './owned-table.ts';

export function flashTables(database: Database): FlashStore {
  return {
    apps: ownedTable(database, {
      table: 'flash_apps',
      toRow: ({ id, accountId, name, createdAt }) => ({
        id,
        account_id: accountId,
        name,
        created_at: createdAt,
      }),
      fromRow: (found) => ({
        id: String(found['id']),
        accountId: String(found['account_id']),
        name: String(found['name']),
        createdAt: Number(found['created_at']),
      }),
    }),
    environments: ownedTable(database, {
      table: 'flash_environments',
      toRow: ({ id, accountId, appId, name, activeBuildId, endpointIds, createdAt }) => ({
        id,
        account_id: accountId,
        app_id: appId,
        name,
        active_build_id: activeBuildId,
        endpoint_ids: JSON.stringify(endpointIds),
        created_at: createdAt,
      }),
      fromRow: (found) => ({
        id: String(found['id']),
        accountId: String(found['account_id']),
        appId: String(found['app_id']),
        name: String(found['name']),
        activeBuildId: found['active_build_id'] as string | null,
        endpointIds: JSON.parse(String(found['endpoint_ids'])) as string[],
        createdAt: Number(found['created_at']),
      }),
    }),
    builds: ownedTable(database, {
      table: 'flash_builds',
      toRow: ({ id, accountId, appId, objectKey, manifest, createdAt }) => ({
        id,
        account_id: accountId,
        app_id: appId,
        object_key: objectKey,
        manifest: JSON.stringify(manifest ?? null),
        created_at: createdAt,
      }),
      fromRow: (found) => ({
        id: String(found['id']),
        accountId: String(found['account_id']),
        appId: String(found['app_id']),
        objectKey: String(found['object_key']),
        manifest: JSON.parse(String(found['manifest'])) as unknown,
        createdAt: Number(found['created_at']),
      }),
    }),
  };
}
