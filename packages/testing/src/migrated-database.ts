import { migrate } from '../../cloud/src/store/migrations/migrate.ts';
import { openDatabase } from '../../cloud/src/store/open-store.ts';
import type { Database } from '../../cloud/src/store/database.ts';
import { createTestDatabase } from './test-database.ts';
import type { DatabaseKind, TestDatabase } from './test-database.ts';

/** A fresh database, open and with all its tables. */
export interface MigratedDatabase {
  testDatabase: TestDatabase;
  database: Database;
  /** Closes and removes it. */
  drop(): Promise<void>;
}

export async function createMigratedDatabase(kind: DatabaseKind): Promise<MigratedDatabase> {
  const place = await createTestDatabase(kind);
  const onError = (error: Error): void => {
    throw error;
  };
  const database = await openDatabase({ database: place.url, data: place.data, poolSize: 5, onError });
  await migrate(database);
  return {
    testDatabase: place,
    database,
    drop: async () => {
      await database.close();
      await place.drop();
    },
  };
}
