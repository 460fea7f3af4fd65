import type { Migration } from './migration.ts';

const RATES = ['gpu', 'cpu', 'disk', 'fast_disk'];
const columns = (suffix: string): string =>
  RATES.map((part) => `${part}_${suffix} bigint not null,`).join(' ');

/** The usage ledger and its roll-ups, and what is paid for of a worker. */
export const usage: Migration = {
  name: 'usage',
  statements: [
    `create table usage_stretches (
      id bigint generated always as identity primary key,
      unit_id text not null,
      account_id text not null,
      kind text not null,
      resource_id text not null,
      gpu_type_id text,
      cpu_flavor_id text,
      tier text,
      data_center_id text not null,
      image text,
      template_id text,
      ${columns('rate')}
      disk_in_gb integer not null,
      added_in_gb integer not null,
      runs integer not null,
      origin_at bigint not null,
      began_ms bigint not null,
      began_at bigint not null,
      ended_at bigint not null
    )`,
    // An end that has not come is the largest number there is, so that one index finds a window.
    `create unique index usage_open on usage_stretches (unit_id) where ended_at = 9007199254740991`,
    `create index usage_current on usage_stretches (account_id) where ended_at = 9007199254740991`,
    `create index usage_by_end on usage_stretches (account_id, kind, ended_at)`,
    `create index usage_by_resource on usage_stretches (account_id, kind, resource_id, ended_at)`,
    `create table usage_sums (
      account_id text not null,
      grouping_by text not null,
      kind text not null,
      level text not null,
      bucket bigint not null,
      group_id text not null,
      ${columns('rate')}
      ${columns('late')}
      ${columns('late_days')}
      runs integer not null,
      runs_late bigint not null,
      disk_in_gb bigint not null,
      added_in_gb bigint not null,
      last_at bigint not null,
      primary key (account_id, grouping_by, kind, level, bucket, group_id)
    )`,
    `alter table workers add column started_at bigint`,
    `alter table workers add column cpu_flavor_id text`,
    `alter table workers add column vcpu_count double precision not null default 0`,
    `alter table workers add column container_disk integer not null default 0`,
    `alter table workers add column template_id text`,
  ],
};
