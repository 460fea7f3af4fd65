import type { Migration } from './migration.ts';

export const flashAndModels: Migration = {
  name: 'flash apps, models and login requests',
  statements: [
    `create table flash_apps (
      id text primary key,
      account_id text not null references accounts (id),
      name text not null,
      created_at bigint not null
    )`,
    `create unique index flash_apps_by_name on flash_apps (account_id, name)`,
    `create table flash_environments (
      id text primary key,
      account_id text not null references accounts (id),
      app_id text not null references flash_apps (id) on delete cascade,
      name text not null,
      active_build_id text,
      endpoint_ids text not null,
      created_at bigint not null
    )`,
    `create unique index flash_environments_by_name on flash_environments (app_id, name)`,
    `create index flash_environments_by_account on flash_environments (account_id, created_at, id)`,
    `create table flash_builds (
      id text primary key,
      account_id text not null references accounts (id),
      app_id text not null references flash_apps (id) on delete cascade,
      object_key text not null,
      manifest text not null,
      created_at bigint not null
    )`,
    `create unique index flash_builds_by_object on flash_builds (object_key)`,
    `create index flash_builds_by_account on flash_builds (account_id, created_at, id)`,
    `create table repo_models (
      id text primary key,
      account_id text not null references accounts (id),
      owner text not null,
      name text not null,
      provider text not null,
      status text not null,
      credential_type text,
      credential_reference text,
      versions text not null,
      created_at bigint not null,
      updated_at bigint not null
    )`,
    `create unique index repo_models_by_name on repo_models (account_id, owner, name)`,
    `create table login_requests (
      id text primary key,
      key_name text not null,
      code_challenge text,
      code_challenge_method text,
      status text not null,
      sealed_key text,
      created_at bigint not null,
      expires_at bigint not null
    )`,
    `create index login_requests_by_expiry on login_requests (expires_at)`,
  ],
};
