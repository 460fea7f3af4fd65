import type { Migration } from './migration.ts';

/** Members of a cluster on Kubernetes are reached by name: their cluster has no addresses of its own. */
export const clustersWithoutSubnet: Migration = {
  name: 'clusters without a subnet',
  statements: [
    {
      // SQLite cannot change a column.
      sqlite: `create table clusters_with_optional_subnet (
        id text primary key,
        account_id text not null references accounts (id),
        name text not null,
        type text not null,
        gpu_type_id text not null,
        gpu_count_per_pod integer not null,
        pod_count integer not null,
        template_id text,
        data_center_id text not null,
        subnet text unique,
        created_at bigint not null,
        updated_at bigint not null
      )`,
      postgres: 'alter table clusters alter column subnet drop not null',
    },
    { sqlite: 'insert into clusters_with_optional_subnet select * from clusters', postgres: 'select 1' },
    { sqlite: 'drop table clusters', postgres: 'select 1' },
    { sqlite: 'alter table clusters_with_optional_subnet rename to clusters', postgres: 'select 1' },
    {
      sqlite: 'create index clusters_by_account on clusters (account_id, created_at, id)',
      postgres: 'select 1',
    },
  ],
};
