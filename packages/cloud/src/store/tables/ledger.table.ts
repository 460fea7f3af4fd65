import type { Database } from '../database.ts';
import type { LedgerStore, UsageRules } from '../ledger-store.ts';
import type { VolumeType } from '../../domain/records.ts';
import { execute, join, raw, row, rows, rowValues, sql } from '../sql.ts';
import type { Row, Statement, Steps } from '../sql.ts';
import { forUpdate } from './owned-table.ts';
import {
  COST_PART_COLUMN,
  RATE_COLUMNS,
  ratesFromRow,
  RollupWriter,
  readRollup,
} from './usage-sums.table.ts';
import {
  COST_PARTS,
  type CurrentRates,
  type UsageIntervalQuery,
  type UsageInterval,
  type UsageRollup,
  type UsageKind,
  type ResourceUsage,
  type UsageChange,
} from '../../domain/usage-records.ts';
import { workerFromRow } from './worker-rows.ts';
import { volumeFromRow } from './network-volume-rows.ts';

/** The end of what has not ended. */
const OPEN_END = Number.MAX_SAFE_INTEGER;
const PRICES_SETTING = 'usage prices';

export function ledgerTable(database: Database, usage?: UsageRules): LedgerStore {
  return {
    recordUsage: (list) => database.write(() => recordUsage(list)),

    rollups: ({ kinds, ...query }) =>
      database.read(function* () {
        const found: UsageRollup[] = [];
        for (const kind of kinds) found.push(yield* readRollup(kind, query));
        return found;
      }),

    listIntervals: (query) =>
      database.read(function* () {
        return (yield* rows<Row>(
          sql`select * from usage_stretches where ${intervalCondition(query)} order by began_at, id`,
        )).map(intervalFromRow);
      }),

    currentRates: (accountId) =>
      database.read(function* () {
        const sumOf = raw(
          RATE_COLUMNS.map((column) => `cast(sum(${column}) as bigint) as ${column}`).join(', '),
        );
        const found = yield* rows<Row>(
          sql`select kind, ${sumOf} from usage_stretches where account_id = ${accountId}
            and ended_at = ${raw(String(OPEN_END))} group by kind`,
        );
        return found.map(
          (one): CurrentRates => ({ kind: one['kind'] as UsageKind, rates: ratesFromRow(one) }),
        );
      }),

    savedPrices: () =>
      database.read(function* () {
        return (yield* row<{ value: string }>(sql`select value from settings where name = ${PRICES_SETTING}`))
          ?.value;
      }),

    savePrices: (text) =>
      database.write(function* () {
        yield* execute(
          sql`insert into settings (name, value) values (${PRICES_SETTING}, ${text})
            on conflict (name) do update set value = excluded.value`,
        );
      }),

    listBillableUnits: () =>
      database.read(function* () {
        const pods = yield* rows<{ id: string }>(
          sql`select id from pods where started_at is not null
            and (wanted <> 'terminated' or ended_at is null) order by id`,
        );
        const workers = yield* rows<{ id: string }>(
          sql`select id from workers where ended_at is null order by id`,
        );
        const volumes = yield* rows<{ id: string }>(sql`select id from network_volumes order by id`);
        const ids = (found: { id: string }[]): string[] => found.map(({ id }) => id);
        return { podIds: ids(pods), workerIds: ids(workers), volumeIds: ids(volumes) };
      }),

    // Whoever ends one of these holds its row, too: nothing is begun again that has just ended.
    reprice: ({ kind, id }, at, isFirst) =>
      database.write(function* () {
        if (usage === undefined) return;
        if (kind === 'volume') {
          const found = yield* row<Row>(sql`select * from network_volumes where id = ${id}${forUpdate}`);
          if (found !== undefined) yield* recordUsage(usage.volumeChanges(volumeFromRow(found), at));
          return;
        }
        const found = yield* row<Row>(
          sql`select * from workers where id = ${id} and ended_at is null and started_at is not null${forUpdate}`,
        );
        if (found === undefined) return;
        const worker = workerFromRow(found);
        yield* recordUsage([
          { unitId: id, usage: usage.workerUsage(worker), at: isFirst ? (worker.startedAt ?? at) : at },
        ]);
      }),
  };
}

/**
 * Inside the transaction of the change that it belongs to, and as its last step: everyone takes the rows of
 * the roll-ups in the same order.
 */
export function* recordUsage(list: readonly UsageChange[]): Steps<void> {
  const rollUps = new RollupWriter();
  for (const change of list) yield* recordUsageChange(change, rollUps);
  yield* rollUps.write();
}

/** Where units end without a word of their own: those of an endpoint that is removed. */
export function* endUsage(accountId: string, kind: UsageKind, resourceId: string, at: number): Steps<void> {
  const open = yield* rows<{ unit_id: string }>(
    sql`select unit_id from usage_stretches where account_id = ${accountId} and kind = ${kind}
      and resource_id = ${resourceId} and ended_at = ${raw(String(OPEN_END))}`,
  );
  yield* recordUsage(open.map(({ unit_id }) => ({ unitId: unit_id, usage: null, at })));
}

function* recordUsageChange({ unitId, usage, at }: UsageChange, rollUps: RollupWriter): Steps<void> {
  const open = yield* row<Row>(
    sql`select * from usage_stretches where unit_id = ${unitId} and ended_at = ${raw(String(OPEN_END))}${forUpdate}`,
  );
  if (open === undefined) {
    if (usage === null) return;
    return yield* beginInterval(
      usage,
      { originAt: at, beganMs: at, beganAt: originSecond(at, usage.kind), addedInGb: usage.diskInGb },
      rollUps,
    );
  }
  const before = intervalFromRow(open);
  if (usage !== null && isSameUsage(before, usage)) return;
  // A clock that was set back ends nothing before it began.
  const beganMs = Number(open['began_ms']);
  const cut = Math.max(at, beganMs);
  const originAt = Number(open['origin_at']);
  // Counted from the stored second, so that intervals of earlier versions, which rounded the origin down,
  // keep their length.
  const second =
    before.beganAt -
    wholeSeconds(beganMs - originAt, before.kind) +
    wholeSeconds(cut - originAt, before.kind);
  yield* execute(sql`update usage_stretches set ended_at = ${second} where id = ${open['id'] ?? null}`);
  rollUps.add(before, -1, second, 0);
  if (usage === null) return;
  yield* beginInterval(
    usage,
    { originAt, beganMs: cut, beganAt: second, addedInGb: Math.max(0, usage.diskInGb - before.diskInGb) },
    rollUps,
  );
}

/**
 * How time is rounded, counted from where a chain of intervals began, so that its pieces add up: a
 * worker's up, as is usual for serverless, and the rest to the nearest second. What ran ran for one.
 */
function wholeSeconds(milliseconds: number, kind: UsageKind): number {
  const seconds = milliseconds / 1000;
  if (kind === 'serverless') return Math.ceil(seconds);
  return seconds > 0 ? Math.max(1, Math.round(seconds)) : 0;
}

/**
 * The second in which a chain of intervals begins. A running interval is shown up to the last whole
 * second of the clock. Its origin is rounded in the same way as its length, so that no more is shown
 * than its end will be charged: 1.01 s over two ticks of the clock are shown and charged as one.
 */
function originSecond(at: number, kind: UsageKind): number {
  return kind === 'serverless' ? Math.floor(at / 1000) : Math.round(at / 1000);
}

function* beginInterval(
  use: ResourceUsage,
  {
    originAt,
    beganMs,
    beganAt,
    addedInGb,
  }: { originAt: number; beganMs: number; beganAt: number; addedInGb: number },
  rollUps: RollupWriter,
): Steps<void> {
  const values: Row = {
    unit_id: use.unitId,
    account_id: use.accountId,
    kind: use.kind,
    resource_id: use.resourceId,
    gpu_type_id: use.gpuTypeId,
    cpu_flavor_id: use.cpuFlavorId,
    tier: use.tier,
    data_center_id: use.dataCenterId,
    image: use.image,
    template_id: use.templateId,
    disk_in_gb: use.diskInGb,
    added_in_gb: addedInGb,
    runs: use.isRunning ? 1 : 0,
    origin_at: originAt,
    began_ms: beganMs,
    began_at: beganAt,
    ended_at: OPEN_END,
  };
  for (const part of COST_PARTS) values[`${COST_PART_COLUMN[part]}_rate`] = use.rates[part];
  // Another server may begin it at the same moment; it is written once.
  const written = yield* execute(
    sql`insert into usage_stretches ${rowValues(values)}
      on conflict (unit_id) where ended_at = ${raw(String(OPEN_END))} do nothing`,
  );
  if (written === 0) return;
  rollUps.add(use, 1, beganAt, addedInGb);
}

function intervalCondition({
  accountId,
  kind,
  from,
  to,
  resourceId,
  gpuTypeIds,
  dataCenterIds,
  image,
  templateId,
}: UsageIntervalQuery): Statement {
  const among = (column: string, values: readonly string[]): Statement =>
    values.length === 0
      ? sql`1 = 0`
      : sql`${raw(column)} in (${join(
          values.map((value) => sql`${value}`),
          ', ',
        )})`;
  const wanted = [
    sql`account_id = ${accountId} and kind = ${kind} and ended_at >= ${from} and began_at < ${to}`,
  ];
  if (resourceId !== undefined) wanted.push(sql`resource_id = ${resourceId}`);
  if (gpuTypeIds !== undefined) wanted.push(among('gpu_type_id', gpuTypeIds));
  if (dataCenterIds !== undefined) wanted.push(among('data_center_id', dataCenterIds));
  if (image !== undefined) wanted.push(sql`image = ${image}`);
  if (templateId !== undefined) wanted.push(sql`template_id = ${templateId}`);
  return join(wanted, ' and ');
}

function intervalFromRow(found: Row): UsageInterval {
  const endedAt = Number(found['ended_at']);
  return {
    unitId: found['unit_id'] as string,
    accountId: found['account_id'] as string,
    kind: found['kind'] as UsageKind,
    resourceId: found['resource_id'] as string,
    gpuTypeId: found['gpu_type_id'] as string | null,
    cpuFlavorId: found['cpu_flavor_id'] as string | null,
    tier: found['tier'] as VolumeType | null,
    dataCenterId: found['data_center_id'] as string,
    image: found['image'] as string | null,
    templateId: found['template_id'] as string | null,
    rates: ratesFromRow(found),
    diskInGb: Number(found['disk_in_gb']),
    isRunning: found['runs'] === 1,
    beganAt: Number(found['began_at']),
    endedAt: endedAt === OPEN_END ? null : endedAt,
    addedInGb: Number(found['added_in_gb']),
  };
}

/** What is paid for is the same, so nothing new begins. */
function isSameUsage(one: ResourceUsage, other: ResourceUsage): boolean {
  const facts = ({
    accountId,
    kind,
    resourceId,
    gpuTypeId,
    cpuFlavorId,
    tier,
    dataCenterId,
    image,
    templateId,
    diskInGb,
    isRunning,
    rates,
  }: ResourceUsage): unknown[] => [
    accountId,
    kind,
    resourceId,
    gpuTypeId,
    cpuFlavorId,
    tier,
    dataCenterId,
    image,
    templateId,
    diskInGb,
    isRunning,
    ...COST_PARTS.map((part) => rates[part]),
  ];
  return JSON.stringify(facts(one)) === JSON.stringify(facts(other));
}
