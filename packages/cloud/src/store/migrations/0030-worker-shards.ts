import type { Migration } from './migration.ts';

/**
 * Where the workers of endpoints are managed by several servers: a lease for each shard, named as in `2/8`, and the servers
 * that take part. A server that does not know these tables manages all workers; it leads only where there are no
 * shards, since the name of the lease in `leadership` says how many there are.
 */
export const workerShards: Migration = {
  name: 'shards of workers',
  expandsOnly: true,
  statements: [
    `create table worker_shards (
      name text not null primary key,
      holder text not null,
      epoch bigint not null,
      expires_at bigint not null
    )`,
    `create table worker_shard_members (
      server text not null primary key,
      host_id text not null,
      expires_at bigint not null
    )`,
  ],
};
