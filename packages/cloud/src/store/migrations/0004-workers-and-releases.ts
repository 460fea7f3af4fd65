import type { Migration } from './migration.ts';

/** Workers that live or lived, and the versions of each endpoint's configuration. */
export const workersAndReleases: Migration = {
  name: 'fleet',
  statements: [
    `create table workers (
      id text primary key,
      endpoint_id text not null,
      account_id text not null,
      version integer not null,
      data_center_id text not null,
      image text not null,
      gpu_type_id text,
      gpu_count integer not null,
      state text not null,
      handle text,
      created_at bigint not null,
      ready_at bigint,
      ended_at bigint,
      exit_code integer,
      reason text
    )`,
    `create index workers_by_endpoint on workers (endpoint_id, created_at, id)`,
    `create index workers_living on workers (endpoint_id) where ended_at is null`,
    `create table releases (
      endpoint_id text not null,
      version integer not null,
      id text not null,
      account_id text not null,
      created_at bigint not null,
      changes text not null,
      sealed_endpoint text not null,
      primary key (endpoint_id, version)
    )`,
  ],
};
