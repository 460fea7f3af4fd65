import type { Sealer } from '../../support/crypto.ts';
import type { Database } from '../database.ts';
import type { UsageRules } from '../ledger-store.ts';
import type { PodReferences, PodReferenceIds, PodStore } from '../pod-store.ts';
import { assignments, execute, byDialect, row, rows, rowValues, sql } from '../sql.ts';
import type { Row, Statement, Steps, Value } from '../sql.ts';
import { recordAudit } from './audit-log.table.ts';
import { recordUsage } from './ledger.table.ts';
import { ownedTable, forShare, forUpdate } from './owned-table.ts';
import type { GpusInUse, Pod } from '../../domain/pods/pod-record.ts';
import type { AuditedChange } from '../collection.ts';
import { volumeFromRow } from './network-volume-rows.ts';

/**
 * Those who take hardware take turns: PostgreSQL waits for this lock until the transaction ends, SQLite needs
 * none.
 */
const placementLock: Statement = byDialect({
  sqlite: 'select 1',
  postgres: 'select pg_advisory_xact_lock(8484003)',
});

export function podTable(database: Database, sealer: Sealer, usage?: UsageRules): PodStore {
  const { toRow, fromRow, write } = podRows(sealer, usage);
  const { list } = ownedTable(database, {
    table: 'pods',
    toRow,
    fromRow,
    listFilter: sql`wanted <> 'terminated'`,
  });

  function* findLocked(id: string): Steps<Pod | undefined> {
    const found = yield* row<Row>(sql`select * from pods where id = ${id}${forUpdate}`);
    return found === undefined ? undefined : fromRow(found);
  }

  return {
    list,

    find: (accountId, id) =>
      database.read(function* () {
        const found = yield* row<Row>(
          sql`select * from pods where id = ${id} and account_id = ${accountId} and wanted <> 'terminated'`,
        );
        return found === undefined ? undefined : fromRow(found);
      }),

    findInAnyAccount: (id) =>
      database.read(function* () {
        const found = yield* row<Row>(sql`select * from pods where id = ${id}`);
        return found === undefined ? undefined : fromRow(found);
      }),

    insert: (accountId, ids, make) =>
      database.write(function* () {
        const references = yield* lockPodReferences(accountId, ids, fromRow);
        const { record, audit, interrupted = [] } = make(references);
        yield* execute(sql`insert into pods ${rowValues(toRow(record))}`);
        yield* recordAudit(audit);
        yield* writeInterrupted(interrupted, references, write);
        return record;
      }),

    change: (accountId, id, ids, next) =>
      database.write(function* () {
        const references = yield* lockPodReferences(accountId, ids, fromRow);
        const current = yield* findLocked(id);
        if (current === undefined || current.accountId !== accountId || current.wanted === 'terminated')
          return undefined;
        const { record, audit, interrupted = [] } = next(current, references);
        yield* recordAudit(audit);
        yield* write(current, record);
        yield* writeInterrupted(interrupted, references, write);
        return record;
      }),

    observe: (id, next) =>
      database.write(function* () {
        const current = yield* findLocked(id);
        const record = current && next(current);
        if (current !== undefined && record !== undefined) yield* write(current, record);
        return record ?? current;
      }),

    reprice: (id, costOf, at, isFirst) =>
      database.write(function* () {
        const current = yield* findLocked(id);
        if (current === undefined || usage === undefined) return;
        const record = { ...current, costPerHour: costOf(current) };
        if (record.costPerHour !== current.costPerHour)
          yield* execute(sql`update pods set ${assignments(toRow(record))} where id = ${id}`);
        const runs = record.startedAt !== null && record.endedAt === null;
        yield* recordUsage([
          { unitId: id, usage: usage.podUsage(record), at: isFirst && runs ? (record.startedAt ?? at) : at },
        ]);
      }),

    listUnreconciled: () =>
      database.read(function* () {
        return (yield* rows<{ id: string }>(sql`select id from pods where settled = 0 order by id`)).map(
          ({ id }) => id,
        );
      }),

    listActive: () =>
      database.read(function* () {
        return (yield* rows<Row>(sql`select * from pods where active = 1 order by id`)).map(fromRow);
      }),

    listDue: (now) =>
      database.read(function* () {
        return (yield* rows<Row>(
          sql`select * from pods where due_at is not null and due_at <= ${now} order by due_at`,
        )).map(fromRow);
      }),

    nextDueAt: () =>
      database.read(function* () {
        const found = yield* row<{ next: number | null }>(
          sql`select min(due_at) as next from pods where due_at is not null`,
        );
        return found?.next ?? null;
      }),

    listTerminated: (accountId) =>
      database.read(function* () {
        return (yield* rows<Row>(
          sql`select * from pods where account_id = ${accountId} and wanted = 'terminated' and settled = 1`,
        )).map(fromRow);
      }),

    deleteTerminated: (terminatedBefore) =>
      database.write(function* () {
        yield* execute(
          sql`delete from pods where wanted = 'terminated' and settled = 1 and status_changed_at < ${terminatedBefore}`,
        );
      }),
  };
}

/** Always in this order, so that two transactions never wait for each other. */
export function* lockPodReferences(
  accountId: string,
  { registryId, volumeId, needsPlacement }: PodReferenceIds,
  fromRow: PodRows['fromRow'],
): Steps<PodReferences> {
  const registry =
    registryId === undefined
      ? undefined
      : yield* row<Row>(
          sql`select id from registries where id = ${registryId} and account_id = ${accountId}${forShare}`,
        );
  const volume =
    volumeId === undefined
      ? undefined
      : yield* row<Row>(
          sql`select * from network_volumes where id = ${volumeId} and account_id = ${accountId}${forShare}`,
        );
  if (needsPlacement === true) yield sql`${placementLock}`;
  // Those that leave are locked too: the GPUs of one that has left meanwhile would be taken from what is held
  // twice.
  const movable =
    needsPlacement === true
      ? (yield* rows<Row>(
          sql`select * from pods where active = 1 and gpu_count > 0
            and (interruptible = 1 or wanted <> 'running') order by id${forUpdate}`,
        )).map(fromRow)
      : [];
  const [interruptible, leaving] = [
    movable.filter(({ wanted }) => wanted === 'running'),
    movable.filter(({ wanted }) => wanted !== 'running'),
  ];
  return {
    registryFound: registry !== undefined,
    volume: volume && volumeFromRow(volume),
    gpusInUse: needsPlacement === true ? yield* gpusInUse() : [],
    interruptible,
    stopping: leaving,
  };
}

/** The references has locked them, as they were. */
export function* writeInterrupted(
  interrupted: readonly AuditedChange<Pod>[],
  references: PodReferences,
  write: PodRows['write'],
): Steps<void> {
  for (const { record, audit } of interrupted) {
    const before = references.interruptible.find(({ id }) => id === record.id);
    if (before === undefined) throw new Error(`pod ${record.id} was not there to be interrupted`);
    yield* write(before, record);
    yield* recordAudit(audit);
  }
}

/** Pods and workers together: they share the machines. */
function* gpusInUse(): Steps<GpusInUse[]> {
  const found = yield* rows<{
    data_center_id: string;
    gpu_type_id: string;
    held: number;
  }>(sql`select data_center_id, gpu_type_id, sum(gpu_count) as held from (
    select data_center_id, gpu_type_id, gpu_count from pods where active = 1 and gpu_type_id is not null
    union all select data_center_id, gpu_type_id, gpu_count from workers
      where ended_at is null and gpu_type_id is not null
  ) as holders group by data_center_id, gpu_type_id`);
  return found.map((holder) => ({
    dataCenterId: holder.data_center_id,
    gpuTypeId: holder.gpu_type_id,
    count: Number(holder.held),
  }));
}

type ColumnEncoding = 'plain' | 'flag' | 'json';
type StoredField = Exclude<keyof Pod, 'env'>;

/** How each field is stored in its column, whose name is the field's with underscores. */
const COLUMN_ENCODINGS: Record<StoredField, ColumnEncoding> = {
  id: 'plain',
  accountId: 'plain',
  name: 'plain',
  compute: 'plain',
  cloud: 'plain',
  image: 'plain',
  args: 'plain',
  containerDisk: 'plain',
  ports: 'json',
  registryId: 'plain',
  interruptible: 'flag',
  bidPerGpu: 'plain',
  locked: 'flag',
  globalNetworking: 'flag',
  startSsh: 'flag',
  startJupyter: 'flag',
  templateId: 'plain',
  volumeSize: 'plain',
  volumePath: 'plain',
  networkVolumeId: 'plain',
  dataCenterId: 'plain',
  gpuTypeId: 'plain',
  gpuCount: 'plain',
  cpuFlavorId: 'plain',
  vcpuCount: 'plain',
  memoryInGb: 'plain',
  cudaVersion: 'plain',
  costPerHour: 'plain',
  stopAfter: 'plain',
  terminateAfter: 'plain',
  wanted: 'plain',
  generation: 'plain',
  status: 'plain',
  statusDetail: 'plain',
  statusChangedAt: 'plain',
  settled: 'flag',
  handle: 'plain',
  instanceGeneration: 'plain',
  startedAt: 'plain',
  endedAt: 'plain',
  exitCode: 'plain',
  createdAt: 'plain',
  updatedAt: 'plain',
  clusterId: 'plain',
  membership: 'json',
};
const COLUMNS = (Object.keys(COLUMN_ENCODINGS) as StoredField[]).map((field) => ({
  field,
  kind: COLUMN_ENCODINGS[field],
  column: field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
}));

export interface PodRows {
  toRow(pod: Pod): Row;
  fromRow(found: Row): Pod;
  /** Writes a pod that changed. What it uses follows from what is written of it. */
  write(before: Pod, after: Pod): Steps<void>;
}

export function podRows(sealer: Sealer, usage: UsageRules | undefined): PodRows {
  const rowOf = (pod: Pod): Row => {
    const values: Row = {
      sealed_env: sealer.seal(JSON.stringify(pod.env), contextOf(pod.id)),
      active: isActive(pod) ? 1 : 0,
      due_at: dueAt(pod),
    };
    for (const { field, kind, column } of COLUMNS) values[column] = encodeColumn(pod[field], kind);
    return values;
  };
  return {
    toRow: rowOf,
    *write(before, after) {
      yield* execute(sql`update pods set ${assignments(rowOf(after))} where id = ${after.id}`);
      if (usage !== undefined) yield* recordUsage(usage.pod(before, after));
    },
    fromRow: (found) => {
      const pod: Record<string, unknown> = {
        env: JSON.parse(sealer.open(String(found['sealed_env']), contextOf(String(found['id'])))),
      };
      for (const { field, kind, column } of COLUMNS) pod[field] = decodeColumn(found[column] ?? null, kind);
      return pod as unknown as Pod;
    },
  };
}

function encodeColumn(value: unknown, kind: ColumnEncoding): Value {
  if (kind === 'flag') return value === true ? 1 : 0;
  return kind === 'json' ? JSON.stringify(value) : (value as Value);
}

function decodeColumn(value: Value, kind: ColumnEncoding): unknown {
  if (kind === 'flag') return value === 1;
  return kind === 'json' ? JSON.parse(String(value)) : value;
}

function contextOf(id: string): string {
  return `pod ${id}`;
}

/** It may have an instance, or is about to. */
function isActive({ status, settled }: Pod): boolean {
  return !settled || status === 'PROVISIONING' || status === 'STARTING' || status === 'RUNNING';
}

/** When a given instant asks for something. A lock holds it off. */
function dueAt({ wanted, locked, stopAfter, terminateAfter }: Pod): number | null {
  if (locked || wanted === 'terminated') return null;
  const instants = [terminateAfter, wanted === 'running' ? stopAfter : null].filter(
    (instant) => instant !== null,
  );
  return instants.length === 0 ? null : Math.min(...instants);
}
