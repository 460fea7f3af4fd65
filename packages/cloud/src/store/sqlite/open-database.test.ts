import assert from 'node:assert/strict';
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { createMigratedDatabase } from '../../../../testing/src/migrated-database.ts';
import { execute, rows, sql } from '../sql.ts';

test('what is committed and was not synced is read only once it is in the database', async (t) => {
  const { testDatabase, database, drop } = await createMigratedDatabase('sqlite');
  t.after(drop);
  const log = join(testDatabase.data, 'berth.db-wal');
  const syncs = t.mock.method(fs, 'fdatasync', (_file: number, done: (error: Error) => void) =>
    done(Object.assign(new Error('EIO'), { syscall: 'fdatasync' })),
  );
  syncBuiltinESMExports();
  t.after(() => {
    syncs.mock.restore();
    syncBuiltinESMExports();
  });
  const count = (): Promise<number> =>
    database.read(function* () {
      const [row] = yield* rows<{ count: number }>(sql`select count(*) as count from job_workers`);
      return row?.count ?? 0;
    });
  const writes = [
    () =>
      database.write(() =>
        execute(
          sql`insert into job_workers (endpoint_id, worker_id, seen_at, busy) values ('e', 'past the group', 1, 0)`,
        ),
      ),
    () =>
      database.jobs().saveHeartbeats([
        {
          endpointId: 'e',
          workerId: 'in the group',
          seenAt: 1,
          busy: 0,
          unhealthy: null,
          accelerated: false,
        },
      ]),
  ];
  for (const [index, write] of writes.entries()) {
    await assert.rejects(write(), {
      code: 'unavailable',
      message: 'the disk that holds the data directory did not confirm a write',
    });
    assert.notEqual(fs.statSync(log).size, 0);
    assert.equal(await count(), index + 1);
    assert.equal(fs.statSync(log).size, 0, 'the log is in the database');
  }
});
