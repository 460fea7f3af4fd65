import type { Migration } from './migration.ts';

/**
 * `leadership` has one row: who leads, as the how-manieth leader, and until when by the clock of the database. `servers`
 * lists those on this database; servers on one data directory have the same host_id, and the same instances.
 * `instance_hosts` says where an instance of a machine runs. `worker_reports` is what the leading server knows of the
 * workers of each endpoint, for the other ones; `at` is the clock of the database.
 */
export const severalServers: Migration = {
  name: 'leadership and servers',
  statements: [
    `create table leadership (name text primary key, holder text not null, epoch bigint not null, expires_at bigint not null)`,
    `insert into leadership (name, holder, epoch, expires_at) values ('leader', '', 0, 0)`,
    `create table servers (id text primary key, host_id text not null, address text not null, version text not null,
      started_at bigint not null, seen_at bigint not null)`,
    `create table instance_hosts (instance_id text primary key, host_id text not null)`,
    `create table worker_reports (endpoint_id text primary key, report text not null, at bigint not null)`,
    `create index worker_reports_by_time on worker_reports (at)`,
  ],
};
