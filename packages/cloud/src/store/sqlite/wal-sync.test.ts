import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { BerthError } from '../../support/errors.ts';
import { WalSync } from './wal-sync.ts';

test('what comes while a sync runs shares the next one, and all of it is waited for', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-wal-'));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'x.db-wal'), 'log');
  const wal = new WalSync(join(folder, 'x.db'), () => assert.fail('nothing failed'));
  assert.equal(wal.pending, undefined);
  const first = wal.syncInBackground();
  const [second, third] = [wal.syncInBackground(), wal.syncInBackground()];
  assert.equal(second, third);
  assert.notEqual(first, second);
  assert.equal(wal.pending, second);
  await second;
  assert.equal(wal.pending, undefined);
  wal.sync();
  wal.close();
});

test('a failed sync fails its callers, and the log is copied before the next one', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-wal-'));
  t.after(() => rmSync(folder, { recursive: true }));
  for (const how of ['at once', 'beside'] as const) {
    const database = join(folder, how);
    let [rescues, goesWell] = [0, false];
    const wal = new WalSync(database, () => {
      rescues += 1;
      if (!goesWell) throw new Error('not yet');
    });
    const sync = async (): Promise<void> => (how === 'at once' ? wal.sync() : await wal.syncInBackground());
    /** Whatever it was, it is told as one thing, and may go well later. */
    const isUnconfirmed =
      (cause: RegExp) =>
      (error: unknown): boolean =>
        error instanceof BerthError && error.code === 'unavailable' && cause.test(String(error.cause));
    assert.equal(wal.hasFailed, false);
    await assert.rejects(sync(), isUnconfirmed(/ENOENT/));
    writeFileSync(`${database}-wal`, 'log');
    await assert.rejects(sync(), isUnconfirmed(/not yet/));
    assert.equal(wal.hasFailed, true);
    goesWell = true;
    await sync();
    assert.equal(wal.hasFailed, false);
    await sync();
    assert.equal(rescues, 2);
    wal.close();
  }
});
