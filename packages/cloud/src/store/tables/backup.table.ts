import type { BackupResult, BackupStore } from '../backup-store.ts';
import type { Database } from '../database.ts';
import { execute, row, sql } from '../sql.ts';

/** The last result is a row of `settings`. */
const LAST = 'last backup';

export function backupTable(database: Database): BackupStore {
  return {
    kind: database.dialect,
    copyTo: (folder) => database.copyTo(folder),
    lastResult: async () => {
      const found = await database.read(() =>
        row<{ value: string }>(sql`select value from settings where name = ${LAST}`),
      );
      return found && (JSON.parse(found.value) as BackupResult);
    },
    saveResult: (result) =>
      database.write(function* () {
        yield* execute(
          sql`insert into settings (name, value) values (${LAST}, ${JSON.stringify(result)})
            on conflict (name) do update set value = excluded.value`,
        );
      }),
  };
}
