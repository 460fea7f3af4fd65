import type { Migration } from './migration.ts';

/**
 * Deployed folders, where several servers need them: a gzipped tar archive of each, as base64 in parts. On
 * SQLite they are on the disk of the one server only.
 */
export const sharedImages: Migration = {
  name: 'deployed folders for several servers',
  statements: [
    `create table image_archives (
      name text not null,
      digest text not null,
      metadata text not null,
      created_at bigint not null,
      primary key (name, digest)
    )`,
    `create table image_archive_parts (
      name text not null,
      digest text not null,
      part integer not null,
      content text not null,
      primary key (name, digest, part)
    )`,
  ],
};
