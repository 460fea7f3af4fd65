import type { Database } from '../database.ts';
import type { ImageArchiveStore } from '../image-archive-store.ts';
import { execute, row, rows, rowValues, sql } from '../sql.ts';
import type { Row } from '../sql.ts';

export function imageArchiveTable(database: Database): ImageArchiveStore {
  return {
    list: () =>
      database.read(function* () {
        const found = yield* rows<Row>(sql`select name, digest from image_archives`);
        return found.map(({ name, digest }) => ({ name: String(name), digest: String(digest) }));
      }),

    insert: ({ name, digest }, { metadata, createdAt, parts }) =>
      database.write(function* () {
        const values = rowValues({ name, digest, metadata, created_at: createdAt });
        const inserted = yield* execute(sql`insert into image_archives ${values} on conflict do nothing`);
        if (inserted === 0) return;
        for (const [part, content] of parts.entries())
          yield* execute(sql`insert into image_archive_parts ${rowValues({ name, digest, part, content })}`);
      }),

    find: ({ name, digest }) =>
      database.read(function* () {
        const found = yield* row<Row>(
          sql`select metadata from image_archives where name = ${name} and digest = ${digest}`,
        );
        if (found === undefined) return undefined;
        const counted = yield* row<Row>(
          sql`select count(*) as parts from image_archive_parts where name = ${name} and digest = ${digest}`,
        );
        return { metadata: String(found['metadata']), parts: Number(counted?.['parts']) };
      }),

    part: ({ name, digest }, part) =>
      database.read(function* () {
        const found = yield* row<Row>(
          sql`select content from image_archive_parts where name = ${name} and digest = ${digest} and part = ${part}`,
        );
        return found === undefined ? undefined : String(found['content']);
      }),

    remove: ({ name, digest }) =>
      database.write(function* () {
        yield* execute(sql`delete from image_archives where name = ${name} and digest = ${digest}`);
        yield* execute(sql`delete from image_archive_parts where name = ${name} and digest = ${digest}`);
      }),
  };
}
