/** A record of `/v2/billing`: times, ids and amounts. */
export type BillingRecord = Record<string, string | number>;

export interface CostChart {
  /** Seconds since 1970, one for each day. */
  times: number[];
  series: { label: string; values: number[] }[];
}

/** Groups beyond the most expensive ones are one together: a chart of a hundred colours says nothing. */
const MAX_SERIES = 5;
const OTHERS = 'others';

const PARTS: readonly (readonly [label: string, prefix: string])[] = [
  ['Pods', 'pod'],
  ['Serverless', 'serverless'],
  ['Storage', 'storage'],
  ['Clusters', 'cluster'],
];

const DAY_MS = 86_400_000;

/** The last days in UTC, today included, as the API writes their starts. */
export function lastDays(count: number, now: number): string[] {
  const today = Math.floor(now / DAY_MS) * DAY_MS;
  return Array.from({ length: count }, (_, index) =>
    new Date(today - (count - 1 - index) * DAY_MS).toISOString(),
  );
}

/** By day: of the whole, one series for each kind of usage; else one for each group. */
export function costSeries(
  records: readonly BillingRecord[],
  isWhole: boolean,
  days: readonly string[],
): CostChart {
  const at = new Map(days.map((day, index) => [Date.parse(day), index]));
  const series = new Map<string, number[]>();
  const add = (label: string, day: string, amount: number): void => {
    const values = series.get(label) ?? days.map(() => 0);
    const index = at.get(Date.parse(day));
    if (index !== undefined) values[index] = (values[index] ?? 0) + amount;
    series.set(label, values);
  };
  for (const record of records) {
    const day = String(record['startTime']);
    if (isWhole) for (const [label, prefix] of PARTS) add(label, day, partOf(record, prefix));
    else add(String(record['group']), day, Number(record['totalAmount'] ?? 0));
  }
  return {
    times: days.map((day) => Date.parse(day) / 1000),
    series: [...series].map(([label, values]) => ({ label, values })),
  };
}

function partOf(record: BillingRecord, prefix: string): number {
  return Object.entries(record)
    .filter(([name]) => name.startsWith(prefix) && name.endsWith('Amount'))
    .reduce((sum, [, amount]) => sum + Number(amount), 0);
}

/** Names the group of each record; those beyond the most expensive are `others`. */
export function groupedRecords(records: readonly BillingRecord[], group: string): BillingRecord[] {
  const dear = costByGroup(records, group).slice(0, MAX_SERIES);
  const names = new Map(dear.map(({ id, name }) => [id, name ?? id]));
  return records.map((record) => ({ ...record, group: names.get(String(record[group])) ?? OTHERS }));
}

/** The most expensive first. */
export function costByGroup(
  records: readonly BillingRecord[],
  group: string,
): { id: string; name: string | undefined; amount: number }[] {
  const sums = new Map<string, { id: string; name: string | undefined; amount: number }>();
  for (const record of records) {
    const id = String(record[group]);
    const name = record['accountName'];
    const sum = sums.get(id) ?? { id, name: name === undefined ? undefined : String(name), amount: 0 };
    sum.amount += Number(record['totalAmount'] ?? 0);
    sums.set(id, sum);
  }
  return [...sums.values()].sort((one, other) => other.amount - one.amount);
}
