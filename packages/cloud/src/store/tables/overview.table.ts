import type { PodStatus } from '../../domain/pods/pod-record.ts';
import type { Endpoint } from '../../domain/records.ts';
import type { Database } from '../database.ts';
import type { OverviewStore, ReservedResources } from '../overview-store.ts';
import { row, rows, sql } from '../sql.ts';

/** Sums in the database: the rows of 10,000 pods or 1,000,000 jobs are not read. */
export function overviewTable(database: Database): OverviewStore {
  return {
    endpoints: (accountId) =>
      database.read(function* () {
        const found = yield* rows<{
          id: string;
          name: string;
          type: Endpoint['type'];
          workers_max: number;
          queued: number;
          running: number;
          completed: number;
          failed: number;
          retried: number;
          failed_stored: number;
        }>(sql`select endpoint.id, endpoint.name, endpoint.type, endpoint.workers_max,
            coalesce(sum(counted.queued), 0) as queued, coalesce(sum(counted.running), 0) as running,
            coalesce(sum(counted.completed), 0) as completed, coalesce(sum(counted.failed), 0) as failed,
            coalesce(sum(counted.retried), 0) as retried,
            case when coalesce(sum(counted.failed), 0) > 0 and exists (select 1 from jobs
              where jobs.endpoint_id = endpoint.id and jobs.status in ('FAILED', 'TIMED_OUT'))
              then 1 else 0 end as failed_stored
          from endpoints as endpoint left join job_counts as counted on counted.endpoint_id = endpoint.id
          where endpoint.account_id = ${accountId}
          group by endpoint.id, endpoint.name, endpoint.type, endpoint.workers_max`);
        return found.map((endpoint) => ({
          id: endpoint.id,
          name: endpoint.name,
          type: endpoint.type,
          workersMax: endpoint.workers_max,
          jobs: {
            inQueue: Number(endpoint.queued),
            inProgress: Number(endpoint.running),
            completed: Number(endpoint.completed),
            failed: Number(endpoint.failed),
            retried: Number(endpoint.retried),
          },
          failedStored: Number(endpoint.failed_stored) === 1,
        }));
      }),

    podCounts: (accountId) =>
      database.read(function* () {
        const found = yield* rows<{ status: PodStatus; pods: number }>(
          sql`select status, count(*) as pods from pods
            where account_id = ${accountId} and wanted <> 'terminated' group by status`,
        );
        return Object.fromEntries(found.map(({ status, pods }) => [status, Number(pods)]));
      }),

    failedPods: (accountId, limit) =>
      database.read(function* () {
        const found = yield* rows<{ id: string; name: string; status_detail: string | null }>(
          sql`select id, name, status_detail from pods
            where account_id = ${accountId} and wanted <> 'terminated' and status = 'ERROR'
            order by status_changed_at desc limit ${limit}`,
        );
        return found.map(({ id, name, status_detail }) => ({ id, name, statusDetail: status_detail }));
      }),

    reserved: (accountId) =>
      database.read(function* () {
        const owned = accountId === undefined ? sql`1 = 1` : sql`account_id = ${accountId}`;
        const found = yield* row<Record<keyof ReservedResources, number>>(sql`select
          (select count(*) from pods where ${owned} and wanted <> 'terminated') as pods,
          (select coalesce(sum(workers_max), 0) from endpoints where ${owned}) as "workersMax",
          (select coalesce(sum(gpu_count), 0) from pods where ${owned} and wanted = 'running')
            + (select coalesce(sum(gpu_count), 0) from workers where ${owned} and ended_at is null) as gpus,
          (select coalesce(sum(size), 0) from network_volumes where ${owned}) as "volumeGb"`);
        return {
          pods: Number(found?.pods),
          workersMax: Number(found?.workersMax),
          gpus: Number(found?.gpus),
          volumeGb: Number(found?.volumeGb),
        };
      }),

    instances: (accountId) =>
      database.read(function* () {
        const found = yield* rows<{ id: string; data_center_id: string; ended_at: number | null }>(
          sql`select id, data_center_id, null as ended_at from pods
              where account_id = ${accountId} and wanted <> 'terminated'
            union all select id, data_center_id, ended_at from workers where account_id = ${accountId}`,
        );
        return found.map(({ id, data_center_id, ended_at }) => ({
          id,
          dataCenterId: data_center_id,
          endedAt: ended_at === null ? null : Number(ended_at),
        }));
      }),
  };
}
