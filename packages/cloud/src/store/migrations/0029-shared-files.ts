import type { Migration } from './migration.ts';

/**
 * Files that every server needs, such as builds: base64 in parts, or only their names where a bucket has the
 * content. Parts are written before the row that makes them a file. On SQLite they are on the disk of the one
 * server only.
 */
export const sharedFiles: Migration = {
  name: 'files for several servers',
  expandsOnly: true,
  statements: [
    `create table shared_files (
      name text not null primary key,
      version text not null,
      size bigint not null,
      parts integer not null,
      created_at bigint not null
    )`,
    `create table shared_file_parts (
      version text not null,
      part integer not null,
      content text not null,
      created_at bigint not null,
      primary key (version, part)
    )`,
  ],
};
