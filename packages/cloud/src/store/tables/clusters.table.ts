import type { Sealer } from '../../support/crypto.ts';
import type { ClusterStore } from '../cluster-store.ts';
import type { Database } from '../database.ts';
import type { UsageRules } from '../ledger-store.ts';
import { execute, row, rows, rowValues, sql } from '../sql.ts';
import type { Row } from '../sql.ts';
import { recordAudit } from './audit-log.table.ts';
import { ownedTable, forUpdate } from './owned-table.ts';
import { lockPodReferences, podRows, writeInterrupted } from './pods.table.ts';
import type { Pod } from '../../domain/pods/pod-record.ts';
import type { Cluster, ClusterType } from '../../domain/clusters/cluster-record.ts';

export function clusterTable(database: Database, sealer: Sealer, usage?: UsageRules): ClusterStore {
  const pods = podRows(sealer, usage);
  const { find, list, change } = ownedTable(database, { table: 'clusters', toRow, fromRow });
  const byRank = (found: Row[]): Pod[] =>
    found.map(pods.fromRow).sort((one, other) => (one.membership?.rank ?? 0) - (other.membership?.rank ?? 0));

  return {
    find,
    list,
    change,

    insert: (accountId, ids, make) =>
      database.write(function* () {
        const references = yield* lockPodReferences(accountId, ids, pods.fromRow);
        const taken = yield* rows<{ subnet: string }>(
          sql`select subnet from clusters where subnet is not null`,
        );
        const whole = make({ ...references, subnets: taken.map(({ subnet }) => subnet) });
        yield* execute(sql`insert into clusters ${rowValues(toRow(whole.cluster))}`);
        for (const member of whole.members)
          yield* execute(sql`insert into pods ${rowValues(pods.toRow(member))}`);
        yield* recordAudit(whole.audit);
        yield* writeInterrupted(whole.interrupted ?? [], references, pods.write);
        return whole;
      }),

    listMembers: (accountId, clusterId) =>
      database.read(function* () {
        const of = clusterId === undefined ? sql`cluster_id is not null` : sql`cluster_id = ${clusterId}`;
        return byRank(
          yield* rows<Row>(
            sql`select * from pods where account_id = ${accountId} and ${of} and wanted <> 'terminated'`,
          ),
        );
      }),

    remove: (accountId, id, next, audit) =>
      database.write(function* () {
        const found = yield* row<Row>(
          sql`select id from clusters where id = ${id} and account_id = ${accountId}${forUpdate}`,
        );
        if (found === undefined) return undefined;
        const members: Pod[] = [];
        for (const member of byRank(
          yield* rows<Row>(
            sql`select * from pods where cluster_id = ${id} and wanted <> 'terminated' order by id${forUpdate}`,
          ),
        )) {
          const left = next(member);
          yield* pods.write(member, left);
          members.push(left);
        }
        yield* execute(sql`delete from clusters where id = ${id}`);
        yield* recordAudit(audit);
        return members;
      }),
  };
}

function toRow(cluster: Cluster): Row {
  return {
    id: cluster.id,
    account_id: cluster.accountId,
    name: cluster.name,
    type: cluster.type,
    gpu_type_id: cluster.gpuTypeId,
    gpu_count_per_pod: cluster.gpuCountPerPod,
    pod_count: cluster.podCount,
    template_id: cluster.templateId,
    data_center_id: cluster.dataCenterId,
    subnet: cluster.subnet,
    created_at: cluster.createdAt,
    updated_at: cluster.updatedAt,
  };
}

function fromRow(found: Row): Cluster {
  return {
    id: String(found['id']),
    accountId: String(found['account_id']),
    name: String(found['name']),
    type: String(found['type']) as ClusterType,
    gpuTypeId: String(found['gpu_type_id']),
    gpuCountPerPod: Number(found['gpu_count_per_pod']),
    podCount: Number(found['pod_count']),
    templateId: found['template_id'] as string | null,
    dataCenterId: String(found['data_center_id']),
    subnet: found['subnet'] as string | null,
    createdAt: Number(found['created_at']),
    updatedAt: Number(found['updated_at']),
  };
}
