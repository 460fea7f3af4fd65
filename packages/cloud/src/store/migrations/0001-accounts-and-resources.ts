import type { Migration } from './migration.ts';

/**
 * Booleans are 0 or 1, times are milliseconds in a bigint, lists and maps are JSON text:
 * types that mean the same in both databases. A column called sealed_… holds text that the
 * master key encrypts.
 */
export const accountsAndResources: Migration = {
  name: 'accounts and resources',
  statements: [
    `create table accounts (
      id text primary key,
      name text not null unique,
      ssh_keys text not null,
      created_at bigint not null
    )`,
    `create table api_keys (
      id text primary key,
      account_id text not null references accounts (id),
      name text not null,
      hash text not null unique,
      access text not null,
      scopes text not null,
      endpoints text,
      enabled integer not null,
      root integer not null,
      created_at bigint not null,
      last_used_at bigint,
      expires_at bigint
    )`,
    `create index api_keys_by_account on api_keys (account_id, created_at, id)`,
    `create table templates (
      id text primary key,
      account_id text not null references accounts (id),
      name text not null,
      image text not null,
      args text not null,
      container_disk integer not null,
      volume_size integer not null,
      volume_path text not null,
      ports text not null,
      port_labels text not null,
      sealed_env text not null,
      registry_id text,
      category text not null,
      public integer not null,
      serverless integer not null,
      readme text not null,
      start_ssh integer not null,
      start_jupyter integer not null,
      start_script text not null,
      advanced_start integer not null,
      allowed_cuda_versions text not null,
      config text not null,
      created_at bigint not null,
      updated_at bigint not null,
      unique (account_id, name)
    )`,
    `create index templates_by_account on templates (account_id, created_at, id)`,
    `create index templates_public on templates (created_at, id) where public = 1`,
    `create table network_volumes (
      id text primary key,
      account_id text not null references accounts (id),
      name text not null,
      size integer not null,
      data_center_id text not null,
      type text not null,
      created_at bigint not null
    )`,
    `create index network_volumes_by_account on network_volumes (account_id, created_at, id)`,
    `create table registries (
      id text primary key,
      account_id text not null references accounts (id),
      name text not null,
      sealed_username text not null,
      sealed_password text not null,
      created_at bigint not null,
      unique (account_id, name)
    )`,
    `create table registry_delegations (
      id text primary key,
      account_id text not null references accounts (id),
      name text,
      aws_user text not null,
      aws_region text not null,
      repository text not null,
      tag text not null,
      created_at bigint not null
    )`,
    `create index registry_delegations_by_account on registry_delegations (account_id, created_at, id)`,
    `create table secrets (
      id text primary key,
      account_id text not null references accounts (id),
      name text not null,
      sealed_value text not null,
      description text,
      created_at bigint not null,
      updated_at bigint not null,
      value_updated_at bigint not null,
      unique (account_id, name)
    )`,
    `create table audit_log (
      id bigint generated always as identity primary key,
      at bigint not null,
      account_id text not null,
      key_id text,
      interface text not null,
      request_id text not null,
      action text not null,
      resource text not null,
      resource_id text not null,
      changes text not null
    )`,
    `create index audit_log_by_account on audit_log (account_id, id)`,
    `create table settings (
      name text primary key,
      value text not null
    )`,
  ],
};
