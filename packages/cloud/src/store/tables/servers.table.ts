import type { Database } from '../database.ts';
import type { ServerStore, ServerView, WorkerReport } from '../server-store.ts';
import { byDialect, execute, row, rows, sql, tuples } from '../sql.ts';
import type { Row, Steps } from '../sql.ts';

const now = byDialect({
  sqlite: `cast(unixepoch('subsec') * 1000 as integer)`,
  postgres: '(extract(epoch from clock_timestamp()) * 1000)::bigint',
});
const REMEMBERED_MS = 3_600_000;
/** Transactions that began together are seen one after the other: reports of this time are read again. */
const OVERLAP_MS = 5_000;

/** `fenced` takes the writes of the leading server alone. */
export function serverTable(database: Database, fenced: Database): ServerStore {
  return {
    heartbeat: ({ id, hostId, address, version, startedAt }) =>
      database.write(function* () {
        yield* execute(
          sql`insert into servers (id, host_id, address, version, started_at, seen_at)
            values (${id}, ${hostId}, ${address}, ${version}, ${startedAt}, ${now})
            on conflict (id) do update set address = excluded.address, seen_at = excluded.seen_at`,
        );
        return yield* listServers();
      }),
    list: () => database.read(listServers),
    remove: (id) =>
      database.write(function* () {
        yield* execute(sql`delete from servers where id = ${id}`);
      }),
    findHost: (instanceId) =>
      database.read(function* () {
        const found = yield* row<{ host_id: string }>(
          sql`select host_id from instance_hosts where instance_id = ${instanceId}`,
        );
        return found?.host_id;
      }),
    saveHosts: (instanceIds, hostId) =>
      fenced.write(function* () {
        if (instanceIds.length === 0) return;
        yield* execute(
          sql`insert into instance_hosts (instance_id, host_id)
            values ${tuples(instanceIds.map((instanceId) => [instanceId, hostId]))}
            on conflict (instance_id) do update set host_id = excluded.host_id`,
        );
      }),
    saveReports: (reports) =>
      fenced.write(function* () {
        if (reports.length === 0) return;
        yield* execute(
          sql`insert into worker_reports (endpoint_id, report, at)
            select column1, column2, ${now} from
              (values ${tuples(reports.map(({ endpointId, report }) => [endpointId, report]))}) as made
            where true
            on conflict (endpoint_id) do update set report = excluded.report, at = excluded.at`,
        );
      }),
    listReports: (since) =>
      database.read(function* () {
        const at = (yield* row<{ at: number }>(sql`select ${now} as at`))?.at ?? 0;
        const found = yield* rows<Row>(
          sql`select endpoint_id, report from worker_reports where at >= ${since - OVERLAP_MS}`,
        );
        return { at, reports: found.map(reportFromRow) };
      }),
    cleanUp: () =>
      fenced.write(function* () {
        yield* execute(sql`delete from servers where seen_at < ${now} - ${REMEMBERED_MS}`);
        yield* execute(sql`delete from worker_reports where report = '' and at < ${now} - ${REMEMBERED_MS}`);
        yield* execute(
          sql`delete from instance_hosts where not exists (select 1 from workers where id = instance_id)
            and not exists (select 1 from pods where id = instance_id)`,
        );
      }),
  };
}

function* listServers(): Steps<ServerView[]> {
  const found = yield* rows<Row>(
    sql`select servers.*, ${now} - seen_at as silent,
        (select holder from leadership where expires_at > ${now}) as leader
      from servers where seen_at >= ${now} - ${REMEMBERED_MS} order by started_at, id`,
  );
  return found.map((one) => ({
    id: one['id'] as string,
    hostId: one['host_id'] as string,
    address: one['address'] as string,
    version: one['version'] as string,
    startedAt: one['started_at'] as number,
    isLeader: one['leader'] === one['id'],
    silentMs: Math.max(0, Number(one['silent'])),
  }));
}

function reportFromRow(found: Row): WorkerReport {
  return { endpointId: found['endpoint_id'] as string, report: found['report'] as string };
}
