import type { Migration } from './migration.ts';

export const s3Keys: Migration = {
  name: 's3 keys',
  statements: [
    `create table s3_keys (
      id text primary key,
      account_id text not null references accounts (id),
      name text not null,
      access text not null,
      sealed_secret text not null,
      created_at bigint not null,
      last_used_at bigint,
      expires_at bigint
    )`,
    `create index s3_keys_by_account on s3_keys (account_id, created_at, id)`,
  ],
};
