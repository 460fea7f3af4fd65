import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { pagesInTime, WalCheckpointer } from './wal-checkpointer.ts';
import { WalSync } from './wal-sync.ts';

test('the log gets shorter where its copy takes long, and longer where it does not', () => {
  assert.equal(pagesInTime(16_000, 80), 8_000);
  assert.equal(pagesInTime(4_000, 10), 16_000);
  // Not so short that syncs of the disk would take most of the time, whatever a copy took.
  assert.equal(pagesInTime(4_000, 5_000), 1_000);
  assert.equal(pagesInTime(4_000, 0), 160_000);
});

test('large jobs do not fill a long log before it is copied', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-wal-'));
  const database = join(folder, 'berth.db');
  const connection = new DatabaseSync(database);
  connection.exec('pragma journal_mode = wal; create table jobs (request text)');
  const checkpointer = new WalCheckpointer({ connection, database });
  const disk = new WalSync(database, () => undefined);
  try {
    let pauses = 0;
    const insert = connection.prepare('insert into jobs values (?)');
    // 5 MB are 1,221 pages.
    insert.run('x'.repeat(5_000_000));
    // Often enough for the checkpointer to look.
    for (let commits = 0; commits < 16; commits += 1)
      checkpointer.afterCommit(disk, { pause: () => (pauses += 1), resume: () => undefined });
    await checkpointer.stop();
    assert.equal(pauses, 1);
  } finally {
    connection.close();
    checkpointer.close();
    disk.close();
    rmSync(folder, { recursive: true });
  }
});
