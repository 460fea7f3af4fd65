import { migrate } from '../../packages/cloud/src/store/migrate.ts';
import { openDatabase } from '../../packages/cloud/src/store/open.ts';
import type { Database } from '../../packages/cloud/src/store/database.ts';
import { freshDatabase } from './databases.ts';
import type { DatabaseKind, TestDatabase } from './databases.ts';

/** A fresh database, open and with all its tables. */
export interface MigratedDatabase {
  place: TestDatabase;
  database: Database;
  /** Closes and removes it. */
  drop(): Promise<void>;
}

export async function migratedDatabase(kind: DatabaseKind): Promise<MigratedDatabase> {
  const place = await freshDatabase(kind);
  const onError = (error: Error): void => {
    throw error;
  };
  const database = await openDatabase({ database: place.url, data: place.data, poolSize: 5, onError });
  await migrate(database);
  return {
    place,
    database,
    drop: async () => {
      await database.close();
      await place.drop();
    },
  };
}
