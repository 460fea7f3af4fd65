import type { Migration } from './migration.ts';

/** `hash` is of the token in the cookie, or in the link. Both end with their key. */
export const sessions: Migration = {
  name: 'sessions of the console',
  statements: [
    `create table sessions (
      id text primary key,
      account_id text not null references accounts (id),
      key_id text not null references api_keys (id) on delete cascade,
      hash text not null unique,
      user_agent text not null,
      created_at bigint not null,
      last_used_at bigint not null,
      expires_at bigint not null
    )`,
    `create index sessions_by_account on sessions (account_id, created_at, id)`,
    `create index sessions_by_key on sessions (key_id)`,
    `create table sign_in_links (
      hash text primary key,
      account_id text not null references accounts (id),
      key_id text not null references api_keys (id) on delete cascade,
      expires_at bigint not null
    )`,
    `create index sign_in_links_by_key on sign_in_links (key_id)`,
  ],
};
