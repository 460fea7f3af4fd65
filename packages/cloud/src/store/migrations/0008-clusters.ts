import type { Migration } from './migration.ts';

export const clusters: Migration = {
  name: 'clusters',
  statements: [
    `create table clusters (
      id text primary key,
      account_id text not null references accounts (id),
      name text not null,
      type text not null,
      gpu_type_id text not null,
      gpu_count_per_pod integer not null,
      pod_count integer not null,
      template_id text,
      data_center_id text not null,
      subnet text not null unique,
      created_at bigint not null,
      updated_at bigint not null
    )`,
    `create index clusters_by_account on clusters (account_id, created_at, id)`,
    `alter table pods add column cluster_id text`,
    `alter table pods add column membership text`,
    `create index pods_by_cluster on pods (cluster_id) where cluster_id is not null`,
  ],
};
