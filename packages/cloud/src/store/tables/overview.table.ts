import type { PodStatus } from '../../domain/pods/pod-record.ts';
import type { Endpoint } from '../../domain/records.ts';
import type { Database } from '../database.ts';
import type { OverviewStore } from '../overview-store.ts';
import { rows, sql } from '../sql.ts';

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
        }>(sql`select endpoint.id, endpoint.name, endpoint.type, endpoint.workers_max,
            coalesce(sum(counted.queued), 0) as queued, coalesce(sum(counted.running), 0) as running,
            coalesce(sum(counted.completed), 0) as completed, coalesce(sum(counted.failed), 0) as failed,
            coalesce(sum(counted.retried), 0) as retried
          from endpoints as endpoint left join job_counts as counted on counted.endpoint_id = endpoint.id
          where endpoint.account_id = ${accountId}
          group by endpoint.id, endpoint.name, endpoint.type, endpoint.workers_max`);
        return found.map(({ id, name, type, workers_max, queued, running, completed, failed, retried }) => ({
          id,
          name,
          type,
          workersMax: workers_max,
          jobs: {
            inQueue: Number(queued),
            inProgress: Number(running),
            completed: Number(completed),
            failed: Number(failed),
            retried: Number(retried),
          },
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
  };
}
