import { BerthError } from '../../support/errors.ts';
import type { Database } from '../database.ts';
import type { UsageRules } from '../ledger-store.ts';
import type { NetworkVolume } from '../../domain/records.ts';
import { row, sql } from '../sql.ts';
import { recordUsage } from './ledger.table.ts';
import { ownedTable } from './owned-table.ts';
import type { Collection } from '../collection.ts';
import { volumeFromRow } from './network-volume-rows.ts';

export function networkVolumeTable(database: Database, usage?: UsageRules): Collection<NetworkVolume> {
  return ownedTable(database, {
    table: 'network_volumes',
    toRow: (volume) => ({
      id: volume.id,
      account_id: volume.accountId,
      name: volume.name,
      size: volume.size,
      data_center_id: volume.dataCenterId,
      type: volume.type,
      created_at: volume.createdAt,
    }),
    fromRow: volumeFromRow,
    // Checked after the delete: an endpoint that was being created with it is committed by then.
    *onRemove(accountId, id, at) {
      const user = yield* row<{ id: string; name: string }>(
        sql`select id, name from endpoints where account_id = ${accountId}
          and network_volume_ids like ${`%"${id}"%`} limit 1`,
      );
      if (user !== undefined)
        throw new BerthError(
          'in-use',
          `endpoint ${JSON.stringify(user.name)} (${user.id}) uses this network volume; take it from ` +
            'the endpoint, or delete the endpoint first',
        );
      const pod = yield* row<{ id: string; name: string }>(
        sql`select id, name from pods where network_volume_id = ${id} and account_id = ${accountId}
          and wanted <> 'terminated' limit 1`,
      );
      if (pod !== undefined)
        throw new BerthError(
          'in-use',
          `pod ${JSON.stringify(pod.name)} (${pod.id}) has this network volume; terminate the pod first`,
        );
      if (usage !== undefined) yield* recordUsage([{ unitId: id, usage: null, at }]);
    },
    *onWrite(volume, at) {
      if (usage !== undefined) yield* recordUsage(usage.volumeChanges(volume, at));
    },
  });
}
