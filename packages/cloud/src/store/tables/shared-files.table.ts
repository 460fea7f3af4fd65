import type { Database } from '../database.ts';
import type { SharedFile, SharedFileStore } from '../shared-file-store.ts';
import { execute, row, rows, rowValues, sql } from '../sql.ts';
import type { Row, Steps } from '../sql.ts';

export function sharedFileTable(database: Database): SharedFileStore {
  return {
    find: (name) => database.read(() => findFile(name)),

    list: (prefix) =>
      database.read(function* () {
        const found = yield* rows<Row>(
          sql`select * from shared_files where substr(name, 1, ${prefix.length}) = ${prefix} order by name`,
        );
        return found.map(fromRow);
      }),

    addPart: (version, part, content, createdAt) =>
      database.write(function* () {
        const values = rowValues({ version, part, content, created_at: createdAt });
        yield* execute(sql`insert into shared_file_parts ${values}`);
      }),

    part: (version, part) =>
      database.read(function* () {
        const found = yield* row<Row>(
          sql`select content from shared_file_parts where version = ${version} and part = ${part}`,
        );
        return found === undefined ? undefined : String(found['content']);
      }),

    publish: ({ name, version, size, parts, createdAt }) =>
      database.write(function* () {
        const replaced = yield* findFile(name);
        const values = rowValues({ name, version, size, parts, created_at: createdAt });
        yield* execute(sql`insert into shared_files ${values} on conflict (name) do update
          set version = excluded.version, size = excluded.size, parts = excluded.parts,
            created_at = excluded.created_at`);
        if (replaced !== undefined)
          yield* execute(sql`delete from shared_file_parts where version = ${replaced.version}`);
        return replaced;
      }),

    remove: ({ name, version }) =>
      database.write(function* () {
        yield* execute(sql`delete from shared_files where name = ${name} and version = ${version}`);
        yield* execute(sql`delete from shared_file_parts where version = ${version}`);
      }),

    removeIncomplete: (before) =>
      database.write(function* () {
        yield* execute(sql`delete from shared_file_parts where created_at < ${before}
          and version not in (select version from shared_files)`);
      }),
  };
}

function* findFile(name: string): Steps<SharedFile | undefined> {
  const found = yield* row<Row>(sql`select * from shared_files where name = ${name}`);
  return found && fromRow(found);
}

function fromRow(found: Row): SharedFile {
  return {
    name: String(found['name']),
    version: String(found['version']),
    size: Number(found['size']),
    parts: Number(found['parts']),
    createdAt: Number(found['created_at']),
  };
}
