import type { Database } from '../database.ts';
import { PARTS, typeOf } from '../ledger.ts';
import type { CostPart, CurrentRates, Grouping, LedgerStore, Level, StretchQuery, Stretch, Sums, SumsQuery, SumsRow, UsageKind, UsageRules, Use, UseChange } from '../ledger.ts';
import type { VolumeType } from '../records.ts';
import { changes, join, name, perDialect, row, rows, rowValues, sql, tuples } from '../sql.ts';
import type { Row, Statement, Steps, Value } from '../sql.ts';
import { workerFromRow } from './fleet.ts';
import { lockRow } from './owned-table.ts';
import { volumeFromRow } from './volumes.ts';

/** The end of what has not ended. */
const OPEN = Number.MAX_SAFE_INTEGER;
const [HOUR, DAY] = [3_600, 86_400];
/** Rows of one statement: both databases limit how many values it may have. */
const TOGETHER = 100;
const PRICES = 'usage prices';

const COLUMN: Record<CostPart, string> = { gpu: 'gpu', cpu: 'cpu', disk: 'disk', fastDisk: 'fast_disk' };
const RATE_COLUMNS = PARTS.map((part) => `${COLUMN[part]}_rate`);
const LATE_COLUMNS = PARTS.map((part) => `${COLUMN[part]}_late`);
// In a month, whole days are counted apart: rate times seconds would outgrow what a database counts.
const LATE_DAYS_COLUMNS = PARTS.map((part) => `${COLUMN[part]}_late_days`);
const SUMMED = [...RATE_COLUMNS, ...LATE_COLUMNS, ...LATE_DAYS_COLUMNS, 'runs', 'runs_late', 'disk_in_gb', 'added_in_gb'];
const KEY_COLUMNS = ['account_id', 'grouping_by', 'kind', 'level', 'bucket', 'group_id'];
const SUM_COLUMNS = [...KEY_COLUMNS, ...SUMMED, 'last_at'];

const addUp = name(SUMMED.map((column) => `${column} = usage_sums.${column} + excluded.${column}`).join(', '));
const later = name('last_at = case when excluded.last_at > usage_sums.last_at then excluded.last_at else usage_sums.last_at end');
// What was late may be more than a JavaScript number holds; then it travels as text.
const lateSelected = perDialect({
  sqlite: LATE_COLUMNS.map((column) => `case when ${column} between -${OPEN} and ${OPEN} then ${column} else cast(${column} as text) end as ${column}`).join(', '),
  postgres: LATE_COLUMNS.map((column) => `cast(${column} as text) as ${column}`).join(', '),
});
const restSelected = ['group_id', 'bucket', ...RATE_COLUMNS, 'runs', 'runs_late', 'disk_in_gb', 'added_in_gb', 'last_at'].join(', ');
const sumsSelected: Record<Level, Statement> = { hour: name(restSelected), day: name(restSelected), month: name([restSelected, ...LATE_DAYS_COLUMNS].join(', ')) };
const beforeSelected = name(['group_id', ...[...RATE_COLUMNS, 'runs', 'disk_in_gb'].map((column) => `cast(sum(${column}) as bigint) as ${column}`)].join(', '));
// What came to an end before is of no concern to what comes after.
const stillUsed = name([...RATE_COLUMNS, 'runs', 'disk_in_gb'].map((column) => `sum(${column}) <> 0`).join(' or '));

export function ledgerTable(database: Database, usage?: UsageRules): LedgerStore {
  return {
    settle: (list) => database.write(() => settleUses(list)),

    sums: ({ kinds, ...query }) =>
      database.read(function* () {
        const found: Sums[] = [];
        for (const kind of kinds) found.push(yield* sumsOf(kind, query));
        return found;
      }),

    stretches: (query) =>
      database.read(function* () {
        return (yield* rows<Row>(sql`select * from usage_stretches where ${touching(query)} order by began_at, id`)).map(stretchFromRow);
      }),

    current: (accountId) =>
      database.read(function* () {
        const sumOf = name(RATE_COLUMNS.map((column) => `cast(sum(${column}) as bigint) as ${column}`).join(', '));
        const found = yield* rows<Row>(sql`select kind, ${sumOf} from usage_stretches where account_id = ${accountId} and ended_at = ${name(String(OPEN))} group by kind`);
        return found.map((one): CurrentRates => ({ kind: one['kind'] as UsageKind, rates: ratesFromRow(one) }));
      }),

    prices: () =>
      database.read(function* () {
        return (yield* row<{ value: string }>(sql`select value from settings where name = ${PRICES}`))?.value;
      }),

    notePrices: (text) =>
      database.write(function* () {
        yield* changes(sql`insert into settings (name, value) values (${PRICES}, ${text}) on conflict (name) do update set value = excluded.value`);
      }),

    units: () =>
      database.read(function* () {
        const pods = yield* rows<{ id: string }>(sql`select id from pods where started_at is not null and (wanted <> 'terminated' or ended_at is null) order by id`);
        const workers = yield* rows<{ id: string }>(sql`select id from workers where ended_at is null order by id`);
        const volumes = yield* rows<{ id: string }>(sql`select id from network_volumes order by id`);
        const ids = (found: { id: string }[]): string[] => found.map(({ id }) => id);
        return { podIds: ids(pods), workerIds: ids(workers), volumeIds: ids(volumes) };
      }),

    // Whoever ends one of these holds its row, too: nothing is begun anew that has just ended.
    reprice: ({ kind, id }, at, isFirst) =>
      database.write(function* () {
        if (usage === undefined) return;
        if (kind === 'volume') {
          const found = yield* row<Row>(sql`select * from network_volumes where id = ${id}${lockRow}`);
          if (found !== undefined) yield* settleUses(usage.volume(volumeFromRow(found), at));
          return;
        }
        const found = yield* row<Row>(sql`select * from workers where id = ${id} and ended_at is null and started_at is not null${lockRow}`);
        if (found === undefined) return;
        const worker = workerFromRow(found);
        yield* settleUses([{ unitId: id, use: usage.workerUse(worker), at: isFirst ? (worker.startedAt ?? at) : at }]);
      }),
  };
}

/** Inside the transaction of the change that it belongs to, and as its last step: everyone takes these rows in the same order. */
export function* settleUses(list: readonly UseChange[]): Steps<void> {
  const sums = new Map<string, Row>();
  for (const change of list) yield* settleUse(change, sums);
  const sorted = [...sums.keys()].sort().map((key) => sums.get(key) ?? {});
  for (let index = 0; index < sorted.length; index += TOGETHER) yield* addSums(sorted.slice(index, index + TOGETHER));
}

/** Where units end without a word of their own: those of an endpoint that is removed. */
export function* endUses(accountId: string, kind: UsageKind, resourceId: string, at: number): Steps<void> {
  const open = yield* rows<{ unit_id: string }>(sql`select unit_id from usage_stretches where account_id = ${accountId} and kind = ${kind} and resource_id = ${resourceId} and ended_at = ${name(String(OPEN))}`);
  yield* settleUses(open.map(({ unit_id }) => ({ unitId: unit_id, use: null, at })));
}

function* settleUse({ unitId, use, at }: UseChange, sums: Map<string, Row>): Steps<void> {
  const open = yield* row<Row>(sql`select * from usage_stretches where unit_id = ${unitId} and ended_at = ${name(String(OPEN))}${lockRow}`);
  if (open === undefined) {
    if (use === null) return;
    return yield* begin(use, { originAt: at, beganMs: at, beganAt: Math.floor(at / 1000), addedInGb: use.diskInGb }, sums);
  }
  const before = stretchFromRow(open);
  if (use !== null && isSame(before, use)) return;
  // A clock that was set back ends nothing before it began.
  const cut = Math.max(at, Number(open['began_ms']));
  const originAt = Number(open['origin_at']);
  const second = Math.floor(originAt / 1000) + wholeSeconds(cut - originAt, before.kind);
  yield* changes(sql`update usage_stretches set ended_at = ${second} where id = ${open['id'] ?? null}`);
  addChange(sums, before, -1, second, 0);
  if (use === null) return;
  yield* begin(use, { originAt, beganMs: cut, beganAt: second, addedInGb: Math.max(0, use.diskInGb - before.diskInGb) }, sums);
}

/**
 * How time is rounded, counted from where a chain of stretches began, so that its pieces add up: a
 * worker's up, as is usual for serverless, and the rest to the nearest second. What ran ran for one.
 */
function wholeSeconds(milliseconds: number, kind: UsageKind): number {
  const seconds = milliseconds / 1000;
  if (kind === 'serverless') return Math.ceil(seconds);
  return seconds > 0 ? Math.max(1, Math.round(seconds)) : 0;
}

function* begin(use: Use, { originAt, beganMs, beganAt, addedInGb }: { originAt: number; beganMs: number; beganAt: number; addedInGb: number }, sums: Map<string, Row>): Steps<void> {
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
    runs: use.runs ? 1 : 0,
    origin_at: originAt,
    began_ms: beganMs,
    began_at: beganAt,
    ended_at: OPEN,
  };
  for (const part of PARTS) values[`${COLUMN[part]}_rate`] = use.rates[part];
  // Another server may begin it at the same moment; it is written once.
  const written = yield* changes(sql`insert into usage_stretches ${rowValues(values)} on conflict (unit_id) where ended_at = ${name(String(OPEN))} do nothing`);
  if (written === 0) return;
  addChange(sums, use, 1, beganAt, addedInGb);
}

/** Adds what begins or ends at a second to the roll-ups that it is part of. */
function addChange(sums: Map<string, Row>, use: Use, sign: 1 | -1, second: number, addedInGb: number): void {
  for (const [grouping, group, levels] of groupsOf(use)) {
    for (const level of levels) {
      const bucket = startOf(level, second);
      const late = level === 'month' ? (second - bucket) % DAY : second - bucket;
      const key = JSON.stringify([use.accountId, grouping, use.kind, level, bucket, group]);
      let sum = sums.get(key);
      if (sum === undefined) {
        sum = { account_id: use.accountId, grouping_by: grouping, kind: use.kind, level, bucket, group_id: group, last_at: second };
        sums.set(key, sum);
      }
      for (const part of PARTS) {
        const rate = sign * use.rates[part];
        add(sum, `${COLUMN[part]}_rate`, rate);
        addLarge(sum, `${COLUMN[part]}_late`, BigInt(rate) * BigInt(late));
        add(sum, `${COLUMN[part]}_late_days`, (rate * (second - bucket - late)) / DAY);
      }
      const runs = use.runs ? sign : 0;
      add(sum, 'runs', runs);
      add(sum, 'runs_late', runs * (second - bucket));
      add(sum, 'disk_in_gb', sign * use.diskInGb);
      add(sum, 'added_in_gb', addedInGb);
      sum['last_at'] = Math.max(Number(sum['last_at']), second);
    }
  }
}

function groupsOf(use: Use): [grouping: Grouping, group: string, levels: Level[]][] {
  return [
    ['all', '', ['hour', 'day', 'month']],
    ['type', typeOf(use), ['hour', 'day', 'month']],
    ['resource', use.resourceId, ['day', 'month']],
  ];
}

function startOf(level: Level, second: number): number {
  if (level === 'month') {
    const date = new Date(second * 1000);
    return Date.UTC(date.getUTCFullYear(), date.getUTCMonth()) / 1000;
  }
  const length = level === 'hour' ? HOUR : DAY;
  return Math.floor(second / length) * length;
}

function add(sum: Row, column: string, value: number): void {
  sum[column] = Number(sum[column] ?? 0) + value;
}

function addLarge(sum: Row, column: string, value: bigint): void {
  sum[column] = String(BigInt((sum[column] as string | undefined) ?? 0) + value);
}

function* addSums(some: readonly Row[]): Steps<void> {
  const values = tuples(some.map((sum) => SUM_COLUMNS.map((column) => sum[column] ?? null)));
  yield* changes(sql`insert into usage_sums (${name(SUM_COLUMNS.join(', '))}) values ${values}
    on conflict (${name(KEY_COLUMNS.join(', '))}) do update set ${addUp}, ${later}`);
}

function* sumsOf(kind: UsageKind, { accountId, grouping, level, from, to }: Omit<SumsQuery, 'kinds'>): Steps<Sums> {
  const only = sql`account_id = ${accountId} and grouping_by = ${grouping} and kind = ${kind}`;
  const before = yield* rows<Row>(sql`select ${beforeSelected} from usage_sums where ${only} and level = ${level === 'hour' ? 'day' : 'month'} and bucket < ${from} group by group_id having ${stillUsed}`);
  const found = yield* rows<Row>(sql`select ${sumsSelected[level]}, ${lateSelected} from usage_sums where ${only} and level = ${level} and bucket >= ${from} and bucket < ${to} order by bucket, group_id`);
  return {
    kind,
    before: before.map((one) => ({ group: one['group_id'] as string, rates: ratesFromRow(one), runs: Number(one['runs']), diskInGb: Number(one['disk_in_gb']) })),
    rows: found.map(level === 'month' ? monthFromRow : sumsFromRow),
  };
}

function sumsFromRow(found: Row): SumsRow {
  return {
    group: found['group_id'] as string,
    bucket: found['bucket'] as number,
    rates: { gpu: found['gpu_rate'] as number, cpu: found['cpu_rate'] as number, disk: found['disk_rate'] as number, fastDisk: found['fast_disk_rate'] as number },
    late: { gpu: exact(found['gpu_late']), cpu: exact(found['cpu_late']), disk: exact(found['disk_late']), fastDisk: exact(found['fast_disk_late']) },
    runs: found['runs'] as number,
    runsLate: found['runs_late'] as number,
    diskInGb: found['disk_in_gb'] as number,
    addedInGb: found['added_in_gb'] as number,
    lastAt: found['last_at'] as number,
  };
}

function ratesFromRow(found: Row): Record<CostPart, number> {
  return { gpu: Number(found['gpu_rate']), cpu: Number(found['cpu_rate']), disk: Number(found['disk_rate']), fastDisk: Number(found['fast_disk_rate']) };
}

function monthFromRow(found: Row): SumsRow {
  const month = sumsFromRow(found);
  for (const part of PARTS) month.late[part] = BigInt(month.late[part]) + BigInt(found[`${COLUMN[part]}_late_days`] as number) * BigInt(DAY);
  return month;
}

function exact(value: Value | undefined): bigint | number {
  if (typeof value === 'number') return value;
  return value === '0' ? 0 : BigInt(value as string);
}

function touching({ accountId, kind, from, to, resourceId, gpuTypeIds, dataCenterIds, image, templateId }: StretchQuery): Statement {
  const among = (column: string, values: readonly string[]): Statement => (values.length === 0 ? sql`1 = 0` : sql`${name(column)} in (${join(values.map((value) => sql`${value}`), ', ')})`);
  const wanted = [sql`account_id = ${accountId} and kind = ${kind} and ended_at >= ${from} and began_at < ${to}`];
  if (resourceId !== undefined) wanted.push(sql`resource_id = ${resourceId}`);
  if (gpuTypeIds !== undefined) wanted.push(among('gpu_type_id', gpuTypeIds));
  if (dataCenterIds !== undefined) wanted.push(among('data_center_id', dataCenterIds));
  if (image !== undefined) wanted.push(sql`image = ${image}`);
  if (templateId !== undefined) wanted.push(sql`template_id = ${templateId}`);
  return join(wanted, ' and ');
}

function stretchFromRow(found: Row): Stretch {
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
    runs: found['runs'] === 1,
    beganAt: Number(found['began_at']),
    endedAt: endedAt === OPEN ? null : endedAt,
    addedInGb: Number(found['added_in_gb']),
  };
}

/** What is paid for is the same, so nothing new begins. */
function isSame(one: Use, other: Use): boolean {
  const facts = ({ accountId, kind, resourceId, gpuTypeId, cpuFlavorId, tier, dataCenterId, image, templateId, diskInGb, runs, rates }: Use): unknown[] =>
    [accountId, kind, resourceId, gpuTypeId, cpuFlavorId, tier, dataCenterId, image, templateId, diskInGb, runs, ...PARTS.map((part) => rates[part])];
  return JSON.stringify(facts(one)) === JSON.stringify(facts(other));
}
