import type { Sealer } from '../../support/crypto.ts';
import type { Database } from '../database.ts';
import type { WorkerStore } from '../worker-store.ts';
import type { UsageRules } from '../ledger-store.ts';
import type { FieldChange, Endpoint } from '../../domain/records.ts';
import { assignments, execute, row, rows, rowValues, sql } from '../sql.ts';
import type { Row, Steps } from '../sql.ts';
import { endUsage, recordUsage } from './ledger.table.ts';
import { forUpdate } from './owned-table.ts';
import type { Release, Worker } from '../../domain/endpoints/worker-record.ts';
import { workerFromRow } from './worker-rows.ts';

export function workersTable(database: Database, sealer: Sealer, usage?: UsageRules): WorkerStore {
  const releaseOf = (found: Row): Release => releaseFromRow(found, sealer);
  return {
    saveWorker: (worker) =>
      database.write(function* () {
        const values = workerToRow(worker);
        const { id: _, ...rest } = values;
        // The first time there is nothing to pay for yet, and nothing to read.
        const isNew = worker.startedAt === null && worker.endedAt === null;
        const before = isNew
          ? undefined
          : yield* row<Row>(sql`select * from workers where id = ${worker.id}${forUpdate}`);
        // It was removed with its endpoint, and its usage has ended: what is written late must not bill it again.
        if (before === undefined && worker.startedAt !== null) return;
        // An end is final: what another server, or an earlier call, writes late must not revive the worker.
        const written = yield* execute(
          sql`insert into workers ${rowValues(values)} on conflict (id) do update set ${assignments(rest)}
            where workers.ended_at is null`,
        );
        if (usage !== undefined && !isNew && written > 0)
          yield* recordUsage(usage.workerChanges(before && workerFromRow(before), worker));
      }),

    findWorker: (endpointId, id) =>
      database.read(function* () {
        const found = yield* row<Row>(
          sql`select * from workers where id = ${id} and endpoint_id = ${endpointId}`,
        );
        return found === undefined ? undefined : workerFromRow(found);
      }),

    listLiveWorkers: (endpointId) =>
      database.read(function* () {
        const only = endpointId === undefined ? sql`` : sql` and endpoint_id = ${endpointId}`;
        return (yield* rows<Row>(
          sql`select * from workers where ended_at is null${only} order by created_at, id`,
        )).map(workerFromRow);
      }),

    listEndedWorkers: (endpointId) =>
      database.read(function* () {
        return (yield* rows<Row>(
          sql`select * from workers where endpoint_id = ${endpointId} and ended_at is not null order by created_at, id`,
        )).map(workerFromRow);
      }),

    deleteEndedWorkers: (endedBefore) =>
      database.write(function* () {
        const gone = yield* rows<Row>(sql`select * from workers where ended_at < ${endedBefore}`);
        if (gone.length > 0) yield* execute(sql`delete from workers where ended_at < ${endedBefore}`);
        return gone.map(workerFromRow);
      }),

    listActiveEndpoints: () =>
      database.read(function* () {
        const found = yield* rows<{ id: string }>(sql`select id from endpoints where workers_min > 0
          union select endpoint_id from workers where ended_at is null
          union select endpoint_id from job_counts group by endpoint_id having sum(queued) > 0`);
        return found.map(({ id }) => id);
      }),

    listQueuedEndpoints: () =>
      database.read(function* () {
        const found = yield* rows<{ id: string }>(
          sql`select endpoint_id as id from job_counts group by endpoint_id having sum(queued) > 0`,
        );
        return found.map(({ id }) => id);
      }),

    listReleases: (endpointId, { limit, before }) =>
      database.read(function* () {
        const older = before === undefined ? sql`` : sql` and version < ${before}`;
        return (yield* rows<Row>(
          sql`select * from releases where endpoint_id = ${endpointId}${older} order by version desc limit ${limit}`,
        )).map(releaseOf);
      }),

    findRelease: (endpointId, version) =>
      database.read(function* () {
        const found = yield* row<Row>(
          sql`select * from releases where endpoint_id = ${endpointId} and version = ${version}`,
        );
        return found === undefined ? undefined : releaseOf(found);
      }),

    removeWorkers: (endpointId, at) =>
      database.write(function* () {
        const owners = yield* rows<{ account_id: string }>(
          sql`select distinct account_id from workers where endpoint_id = ${endpointId} and ended_at is null`,
        );
        yield* execute(sql`delete from workers where endpoint_id = ${endpointId}`);
        if (usage !== undefined)
          for (const owner of owners) yield* endUsage(owner.account_id, 'serverless', endpointId, at);
      }),
  };
}

/** Written inside the transaction of the change that makes it. */
export function* recordRelease(release: Release, sealer: Sealer): Steps<void> {
  const values: Row = {
    endpoint_id: release.endpointId,
    version: release.version,
    id: release.id,
    account_id: release.accountId,
    created_at: release.createdAt,
    changes: JSON.stringify(release.changes),
    sealed_endpoint: sealer.seal(JSON.stringify(release.endpoint), contextOf(release)),
  };
  yield* execute(sql`insert into releases ${rowValues(values)}`);
}

function releaseFromRow(found: Row, sealer: Sealer): Release {
  const release = {
    endpointId: found['endpoint_id'] as string,
    version: found['version'] as number,
    id: found['id'] as string,
    accountId: found['account_id'] as string,
    createdAt: found['created_at'] as number,
    changes: JSON.parse(found['changes'] as string) as FieldChange[],
  };
  return {
    ...release,
    endpoint: JSON.parse(sealer.open(found['sealed_endpoint'] as string, contextOf(release))) as Endpoint,
  };
}

function contextOf({ endpointId, version }: Pick<Release, 'endpointId' | 'version'>): string {
  return `release ${version} of endpoint ${endpointId}`;
}

function workerToRow(worker: Worker): Row {
  return {
    id: worker.id,
    endpoint_id: worker.endpointId,
    account_id: worker.accountId,
    version: worker.version,
    data_center_id: worker.dataCenterId,
    image: worker.image,
    gpu_type_id: worker.gpuTypeId,
    gpu_count: worker.gpuCount,
    cpu_flavor_id: worker.cpuFlavorId,
    vcpu_count: worker.vcpuCount,
    container_disk: worker.containerDisk,
    template_id: worker.templateId,
    state: worker.state,
    handle: worker.handle,
    created_at: worker.createdAt,
    image_ready_at: worker.imageReadyAt,
    started_at: worker.startedAt,
    ready_at: worker.readyAt,
    first_job_at: worker.firstJobAt,
    ended_at: worker.endedAt,
    exit_code: worker.exitCode,
    reason: worker.reason,
  };
}
