import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { execute, sql } from '../sql.ts';
import { sqliteDatabase } from './open-database.ts';

test('after a refused write, whether it takes writes is tried with a write', async () => {
  const connection = new DatabaseSync(':memory:');
  connection.exec('create table settings (name text primary key, value text)');
  connection.exec('create table things (content text)');
  const allowPages = (pages: number): void => connection.exec(`pragma max_page_count = ${pages}`);
  const pages = Number(connection.prepare('pragma page_count').get()?.['page_count']);
  const database = sqliteDatabase(connection, {
    disk: {
      sync: () => undefined,
      syncInBackground: async () => undefined,
      pending: undefined,
      hasFailed: false,
    },
    freeSpace: () => undefined,
    onFull: () => false,
    close: async () => connection.close(),
  });
  try {
    allowPages(pages);
    const small = connection.prepare("insert into settings values (?, '1')");
    let count = 1_000;
    // Then there is no room for a row of this size any more.
    assert.throws(() => {
      for (; count < 2_000; count += 1) small.run(`probe ${count}`.padEnd(11));
    }, /full/);
    await database.checkWritable();
    const refused = { code: 'unavailable', refusesWrites: true };
    await assert.rejects(
      database.write(function* () {
        yield* execute(sql`insert into things values (${'x'.repeat(100_000)})`);
      }),
      refused,
    );
    await assert.rejects(database.checkWritable(), refused);
    await assert.rejects(database.checkWritable(), refused);
    allowPages(pages + 10);
    await database.checkWritable();
    assert.equal(connection.prepare('select count(*) as count from settings').get()?.['count'], count - 999);
  } finally {
    await database.close();
  }
});
