import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTestDatabase } from '../../../../testing/src/test-database.ts';
import { row, sql } from '../sql.ts';
import { openPostgres } from './open-database.ts';

test('sessions of a server that froze or was cut off are ended by the database', async (t) => {
  const place = await createTestDatabase('postgres');
  t.after(() => place.drop());
  const database = await openPostgres({
    url: place.url,
    poolSize: 2,
    onError: () => undefined,
  });
  t.after(() => database.close());
  const shown = await database.read(() =>
    row<Record<string, string>>(
      sql`select current_setting('tcp_user_timeout') as unconfirmed,
        current_setting('tcp_keepalives_idle') as silent,
        current_setting('idle_session_timeout') as idle,
        current_setting('idle_in_transaction_session_timeout') as in_transaction`,
    ),
  );
  // The first two are what the operating system has, without a unit.
  assert.deepEqual({ ...shown }, { unconfirmed: '10000', silent: '5', idle: '1min', in_transaction: '30s' });
});
