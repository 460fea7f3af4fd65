import { FIELD, FIELDS, MONTH_FIELDS, NO_SUMS, PackedSums } from '../../domain/packed-sums.ts';
import { execute, raw, byDialect, rows, sql, tuples } from '../sql.ts';
import type { Row, Statement, Steps, Value } from '../sql.ts';
import {
  COST_PARTS,
  hardwareGroup,
  type RollupSlice,
  type CostPart,
  type RollupGrouping,
  type RollupLevel,
  type UsageRollup,
  type RollupQuery,
  type UsageKind,
  type ResourceUsage,
  type UsageState,
} from '../../domain/usage-records.ts';

const [HOUR, DAY] = [3_600, 86_400];
/** Rows of one statement: both databases limit how many values it may have. */
const ROWS_PER_STATEMENT = 100;

export const COST_PART_COLUMN: Record<CostPart, string> = {
  gpu: 'gpu',
  cpu: 'cpu',
  disk: 'disk',
  fastDisk: 'fast_disk',
};
export const RATE_COLUMNS = COST_PARTS.map((part) => `${COST_PART_COLUMN[part]}_rate`);
const LATE_COLUMNS = COST_PARTS.map((part) => `${COST_PART_COLUMN[part]}_late`);
// In a month, whole days are counted apart: rate times seconds would outgrow what a database counts.
const LATE_DAYS_COLUMNS = COST_PARTS.map((part) => `${COST_PART_COLUMN[part]}_late_days`);
const SUMMED = [
  ...RATE_COLUMNS,
  ...LATE_COLUMNS,
  ...LATE_DAYS_COLUMNS,
  'runs',
  'runs_late',
  'disk_in_gb',
  'added_in_gb',
];
const KEY_COLUMNS = ['account_id', 'grouping_by', 'kind', 'level', 'bucket', 'group_id'];
const SUM_COLUMNS = [...KEY_COLUMNS, ...SUMMED, 'last_at'];
/** In the order in which they are packed. */
const PACKED_COLUMNS = [
  'bucket',
  'last_at',
  ...RATE_COLUMNS,
  ...LATE_COLUMNS,
  'runs',
  'runs_late',
  'disk_in_gb',
  'added_in_gb',
];

const addSumsSql = raw(
  SUMMED.map((column) => `${column} = usage_sums.${column} + excluded.${column}`).join(', '),
);
const keepLatestSql = raw(
  'last_at = case when excluded.last_at > usage_sums.last_at then excluded.last_at else usage_sums.last_at end',
);
// What was late may be more than a JavaScript number holds; then it travels as text.
const lateSelected = byDialect({
  sqlite: LATE_COLUMNS.map(
    (column) =>
      `case when ${column} between -${Number.MAX_SAFE_INTEGER} and ${Number.MAX_SAFE_INTEGER} then ` +
      `${column} else cast(${column} as text) end as ${column}`,
  ).join(', '),
  postgres: LATE_COLUMNS.map((column) => `cast(${column} as text) as ${column}`).join(', '),
});
const restSelected = ['group_id', ...PACKED_COLUMNS.filter((column) => !LATE_COLUMNS.includes(column))];
const selected = {
  hour: sql`${raw(restSelected.join(', '))}, ${lateSelected}`,
  month: sql`${raw([...restSelected, ...LATE_DAYS_COLUMNS].join(', '))}, ${lateSelected}`,
};
const beforeSelected = raw(
  [
    'group_id',
    ...[...RATE_COLUMNS, 'runs', 'disk_in_gb'].map((column) => `cast(sum(${column}) as bigint) as ${column}`),
  ].join(', '),
);
// What came to an end before is of no concern to what comes after.
const stillUsed = raw(
  [...RATE_COLUMNS, 'runs', 'disk_in_gb'].map((column) => `sum(${column}) <> 0`).join(' or '),
);

/**
 * What one transaction adds to the roll-ups. There is a row for each hour and each month in which
 * something changed, and the row of a month holds its days, packed.
 */
export class RollupWriter {
  readonly #sums = new Map<string, Row>();
  /** By the key of the month. */
  readonly #days = new Map<string, PackedSums>();

  /** Adds what begins or ends at a second to all that it is part of. */
  add(use: ResourceUsage, sign: 1 | -1, second: number, addedInGb: number): void {
    for (const [grouping, group, levels] of groupsOf(use)) {
      for (const level of levels) {
        const bucket = startOf(level, second);
        if (level === 'day')
          this.#addDay(
            keyOf(use.accountId, grouping, use.kind, 'month', startOf('month', second), group),
            use,
            sign,
            second,
            bucket,
            addedInGb,
          );
        else
          this.#addRow(
            {
              account_id: use.accountId,
              grouping_by: grouping,
              kind: use.kind,
              level,
              bucket,
              group_id: group,
              last_at: second,
            },
            use,
            sign,
            second,
            addedInGb,
          );
      }
    }
  }

  /** As the last step of the transaction: everyone takes these rows in the same order. */
  *write(): Steps<void> {
    const sorted = [...this.#sums.keys()].sort();
    for (let index = 0; index < sorted.length; index += ROWS_PER_STATEMENT) {
      const found = yield* addSums(
        sorted.slice(index, index + ROWS_PER_STATEMENT).map((key) => this.#sums.get(key) ?? {}),
      );
      // These months are locked now, so what is read of them is current.
      const months = found.filter(({ level }) => level === 'month');
      if (months.length > 0)
        yield* writeDays(
          months.map((month) => ({
            ...month,
            days: unpackDays(month['days']).merge(this.#days.get(keyOfRow(month)) ?? NO_SUMS).bytes,
          })),
        );
    }
  }

  #addDay(
    key: string,
    use: ResourceUsage,
    sign: 1 | -1,
    second: number,
    bucket: number,
    addedInGb: number,
  ): void {
    const late = second - bucket;
    const rates = COST_PARTS.map((part) => sign * use.rates[part]);
    const runs = use.isRunning ? sign : 0;
    const change = PackedSums.of([
      [
        bucket,
        second,
        ...rates,
        ...rates.map((rate) => BigInt(rate) * BigInt(late)),
        runs,
        runs * late,
        sign * use.diskInGb,
        addedInGb,
      ],
    ]);
    this.#days.set(key, (this.#days.get(key) ?? NO_SUMS).merge(change));
  }

  #addRow(empty: Row, use: ResourceUsage, sign: 1 | -1, second: number, addedInGb: number): void {
    const key = keyOfRow(empty);
    let sum = this.#sums.get(key);
    if (sum === undefined) {
      sum = empty;
      this.#sums.set(key, sum);
    }
    const sinceStart = second - Number(sum['bucket']);
    const late = sinceStart % DAY;
    for (const part of COST_PARTS) {
      const rate = sign * use.rates[part];
      add(sum, `${COST_PART_COLUMN[part]}_rate`, rate);
      addLarge(sum, `${COST_PART_COLUMN[part]}_late`, BigInt(rate) * BigInt(late));
      add(sum, `${COST_PART_COLUMN[part]}_late_days`, (rate * (sinceStart - late)) / DAY);
    }
    const runs = use.isRunning ? sign : 0;
    add(sum, 'runs', runs);
    add(sum, 'runs_late', runs * sinceStart);
    add(sum, 'disk_in_gb', sign * use.diskInGb);
    add(sum, 'added_in_gb', addedInGb);
    sum['last_at'] = Math.max(Number(sum['last_at']), second);
  }
}

/** The roll-ups of one kind from an instant on, and the state before it. */
export function* readRollup(
  kind: UsageKind,
  { accountId, grouping, level, from, to }: Omit<RollupQuery, 'kinds'>,
): Steps<UsageRollup> {
  const only = sql`account_id = ${accountId} and grouping_by = ${grouping} and kind = ${kind}`;
  const month = startOf('month', from);
  const found = yield* rows<Row>(
    sql`select ${beforeSelected} from usage_sums where ${only} and level = 'month' and bucket < ${month}
      group by group_id having ${stillUsed}`,
  );
  const before = found.map(
    (one): UsageState => ({
      group: one['group_id'] as string,
      rates: ratesFromRow(one),
      runs: Number(one['runs']),
      diskInGb: Number(one['disk_in_gb']),
    }),
  );
  if (level === 'day') return { kind, before, changes: yield* daysBetween(only, from, to) };
  const earlier = month < from ? yield* daysBetween(only, month, from) : [];
  return { kind, before: afterChanges(before, earlier), changes: yield* rowsBetween(only, level, from, to) };
}

/** The first is the start of a month. */
function* daysBetween(only: Statement, from: number, to: number): Steps<RollupSlice[]> {
  const months = yield* rows<Row>(
    sql`select group_id, days from usage_sums where ${only} and level = 'month' and bucket >= ${from}
      and bucket < ${to} order by bucket, group_id`,
  );
  return months.map((found): RollupSlice => {
    const days = unpackDays(found['days']);
    let until = days.count;
    while (until > 0 && days.toNumber(until - 1, FIELD.bucket) >= to) until -= 1;
    return { group: found['group_id'] as string, rows: days, from: 0, to: until };
  });
}

function* rowsBetween(
  only: Statement,
  level: 'hour' | 'month',
  from: number,
  to: number,
): Steps<RollupSlice[]> {
  const found = yield* rows<Row>(
    sql`select ${selected[level]} from usage_sums where ${only} and level = ${level} and bucket >= ${from}
      and bucket < ${to} order by bucket, group_id`,
  );
  const columns = level === 'month' ? [...PACKED_COLUMNS, ...LATE_DAYS_COLUMNS] : PACKED_COLUMNS;
  const packed = PackedSums.of(
    found.map((one) => columns.map((column) => exact(one[column]))),
    level === 'month' ? MONTH_FIELDS : FIELDS,
  );
  const list: RollupSlice[] = [];
  for (const [row, one] of found.entries()) {
    const group = one['group_id'] as string;
    const last = list.at(-1);
    if (last?.group === group) last.to = row + 1;
    else list.push({ group, rows: packed, from: row, to: row + 1 });
  }
  return list;
}

function afterChanges(before: readonly UsageState[], list: readonly RollupSlice[]): UsageState[] {
  const states = new Map(before.map((state) => [state.group, state]));
  for (const { group, rows: days, from, to } of list) {
    const state = states.get(group) ?? {
      group,
      rates: { gpu: 0, cpu: 0, disk: 0, fastDisk: 0 },
      runs: 0,
      diskInGb: 0,
    };
    states.set(group, state);
    for (let day = from; day < to; day += 1) {
      for (const [index, part] of COST_PARTS.entries())
        state.rates[part] += days.toNumber(day, FIELD.rate + index);
      state.runs += days.toNumber(day, FIELD.runs);
      state.diskInGb += days.toNumber(day, FIELD.diskInGb);
    }
  }
  return [...states.values()];
}

export function ratesFromRow(found: Row): Record<CostPart, number> {
  return {
    gpu: Number(found['gpu_rate']),
    cpu: Number(found['cpu_rate']),
    disk: Number(found['disk_rate']),
    fastDisk: Number(found['fast_disk_rate']),
  };
}

function groupsOf(use: ResourceUsage): [grouping: RollupGrouping, group: string, levels: RollupLevel[]][] {
  return [
    ['all', '', ['hour', 'day', 'month']],
    ['type', hardwareGroup(use), ['hour', 'day', 'month']],
    ['resource', use.resourceId, ['day', 'month']],
  ];
}

function startOf(level: RollupLevel, second: number): number {
  if (level === 'month') {
    const date = new Date(second * 1000);
    return Date.UTC(date.getUTCFullYear(), date.getUTCMonth()) / 1000;
  }
  const length = level === 'hour' ? HOUR : DAY;
  return Math.floor(second / length) * length;
}

/** Sorted, these are in the order in which rows are taken. */
function keyOf(...values: (Value | undefined)[]): string {
  return JSON.stringify(values);
}

function keyOfRow(found: Row): string {
  return keyOf(...KEY_COLUMNS.map((column) => found[column]));
}

function add(sum: Row, column: string, value: number): void {
  sum[column] = Number(sum[column] ?? 0) + value;
}

function addLarge(sum: Row, column: string, value: bigint): void {
  sum[column] = String(BigInt((sum[column] as string | undefined) ?? 0) + value);
}

/** Answers the rows as they are then, with the days that they had. */
function* addSums(some: readonly Row[]): Steps<Row[]> {
  const values = tuples(some.map((sum) => SUM_COLUMNS.map((column) => sum[column] ?? null)));
  return yield* rows<Row>(sql`insert into usage_sums (${raw(SUM_COLUMNS.join(', '))}) values ${values}
    on conflict (${raw(KEY_COLUMNS.join(', '))}) do update set ${addSumsSql}, ${keepLatestSql}
    returning ${raw(KEY_COLUMNS.join(', '))}, days`);
}

function* writeDays(months: readonly Row[]): Steps<void> {
  const [first = [], ...others] = months.map((month) =>
    ['account_id', 'grouping_by', 'kind', 'bucket', 'group_id', 'days'].map(
      (column) => month[column] ?? null,
    ),
  );
  const [accountId = null, grouping = null, kind = null, bucket = null, group = null, days = null] = first;
  // PostgreSQL takes the types of all from the first.
  const typed = sql`(${accountId}, ${grouping}, ${kind}, cast(${bucket} as bigint), ${group},
    cast(${days} as ${byDialect({ sqlite: 'blob', postgres: 'bytea' })}))`;
  const values = others.length === 0 ? typed : sql`${typed}, ${tuples(others)}`;
  yield* execute(sql`with given (account_id, grouping_by, kind, bucket, group_id, days) as (values ${values})
    update usage_sums set days = given.days from given
    where usage_sums.account_id = given.account_id and usage_sums.grouping_by = given.grouping_by
      and usage_sums.kind = given.kind
      and usage_sums.level = 'month' and usage_sums.bucket = given.bucket and usage_sums.group_id = given.group_id`);
}

function unpackDays(days: Value | undefined): PackedSums {
  return days instanceof Uint8Array ? new PackedSums(days) : NO_SUMS;
}

function exact(value: Value | undefined): bigint | number {
  return typeof value === 'number' ? value : BigInt(value as string);
}
