import type { Migration } from './migration.ts';

/** In the order of `store/packed-sums.ts`. */
const FIELDS = [
  'bucket',
  'last_at',
  ...['rate', 'late'].flatMap((suffix) =>
    ['gpu', 'cpu', 'disk', 'fast_disk'].map((part) => `${part}_${suffix}`),
  ),
  'runs',
  'runs_late',
  'disk_in_gb',
  'added_in_gb',
];

const packDays = (month: string, days: string): string => `
  with packed as (
    select account_id, grouping_by, kind, group_id, ${month} as month, ${days} as days
    from usage_sums where level = 'day' group by 1, 2, 3, 4, 5
  )
  update usage_sums set days = packed.days from packed
  where usage_sums.account_id = packed.account_id and usage_sums.grouping_by = packed.grouping_by and usage_sums.kind = packed.kind
    and usage_sums.level = 'month' and usage_sums.bucket = packed.month and usage_sums.group_id = packed.group_id`;

/**
 * The days of the roll-ups move into the rows of their months: a year of them is twelve rows to read, and not
 * 365.
 */
export const packedDays: Migration = {
  name: 'packed days',
  statements: [
    {
      sqlite: 'alter table usage_sums add column days blob',
      postgres: 'alter table usage_sums add column days bytea',
    },
    {
      sqlite: packDays(
        `cast(strftime('%s', bucket, 'unixepoch', 'start of month') as integer)`,
        `unhex(group_concat(printf('${FIELDS.map(() => '%016x').join('')}', ${FIELDS.join(', ')}), '' order by bucket))`,
      ),
      postgres: packDays(
        `cast(extract(epoch from date_trunc('month', to_timestamp(bucket) at time zone 'UTC')) as bigint)`,
        `string_agg(${FIELDS.map((field) => `int8send(${field}::bigint)`).join(' || ')}, ''::bytea order by bucket)`,
      ),
    },
    `delete from usage_sums where level = 'day'`,
  ],
};
