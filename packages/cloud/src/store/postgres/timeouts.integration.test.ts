import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTestDatabase } from '../../../../testing/src/test-database.ts';
import { sql } from '../sql.ts';
import { openPostgres } from './open-database.ts';

test('a statement that the database gives up is unavailable for now, and the next one goes well', async (t) => {
  const place = await createTestDatabase('postgres');
  t.after(() => place.drop());
  const url = new URL(place.url);
  url.searchParams.set('options', '-c statement_timeout=100');
  const database = await openPostgres({ url: url.href, poolSize: 2, onError: () => undefined });
  t.after(() => database.close());
  for (const run of [database.read, database.write])
    await assert.rejects(
      run(function* () {
        yield sql`select pg_sleep(10)`;
      }),
      { code: 'unavailable', message: /57014/ },
    );
  await database.read(function* () {
    yield sql`select 1`;
  });
});

test('a database that only reads says that it takes no writes', async (t) => {
  const place = await createTestDatabase('postgres');
  t.after(() => place.drop());
  const url = new URL(place.url);
  url.searchParams.set('options', '-c default_transaction_read_only=on');
  const database = await openPostgres({ url: url.href, poolSize: 2, onError: () => undefined });
  t.after(() => database.close());
  await assert.rejects(
    database.write(function* () {
      yield sql`create table things (name text)`;
    }),
    { code: 'unavailable', refusesWrites: true },
  );
  // What /readyz asks.
  await assert.rejects(database.checkWritable(), { code: 'unavailable', refusesWrites: true });
});
