import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import type { BackupResult } from '../../store/backup-store.ts';
import { ManualClock } from '../../support/clock.ts';
import { packTrees } from '../../support/tar/tar-pack.ts';
import type { PackedEntry } from '../../support/tar/tar-pack.ts';
import { BACKUP_FORMAT, MANIFEST_FILE } from './backup-manifest.ts';
import { BackupSchedule } from './backup-schedule.ts';
import type { BackupTarget } from './backup-target.ts';
import { backupTime } from './backup-target.ts';

const HOUR_MS = 3_600_000;
let data: string;
let clock: ManualClock;
let kept: string[];
let last: BackupResult | undefined;
let isFailing: boolean;
before(() => {
  data = mkdtempSync(join(tmpdir(), 'berth-schedule-'));
});
after(() => rmSync(data, { recursive: true }));
beforeEach(() => {
  clock = new ManualClock();
  kept = ['notes.txt'];
  last = undefined;
  isFailing = false;
});

const target: BackupTarget = {
  list: async () => kept.filter((name) => backupTime(name) !== undefined).sort(),
  add: async (name) => {
    if (isFailing) throw new Error('the bucket is gone');
    kept.push(name);
  },
  remove: async (name) => void (kept = kept.filter((one) => one !== name)),
};

function schedule(isWhole = true): BackupSchedule {
  const entries: PackedEntry[] = [];
  const manifest = { format: BACKUP_FORMAT, database: { kind: 'sqlite', schema: 1 }, entries };
  return new BackupSchedule({
    backups: {
      stream: () =>
        packTrees([], {
          ...(isWhole && { lastFile: () => ({ name: MANIFEST_FILE, content: JSON.stringify(manifest) }) }),
        }),
    } as never,
    store: {
      kind: 'sqlite',
      copyTo: async () => 1,
      lastResult: async () => last,
      saveResult: async (result) => void (last = result),
    },
    clock,
    log: { info: () => undefined, error: () => undefined } as never,
    data,
    targetName: 'bucket',
    target,
    everyHours: 24,
    keep: 3,
    volumes: false,
  });
}

test('a backup is made when the newest one is old enough, the oldest go, and other files stay', async () => {
  const backups = schedule();
  for (let hour = 0; hour < 24 * 5; hour += 1) {
    await backups.runIfDue();
    clock.advance(HOUR_MS);
  }
  assert.deepEqual(kept, [
    'notes.txt',
    'berth-2026-01-03T00-00-00Z.tar',
    'berth-2026-01-04T00-00-00Z.tar',
    'berth-2026-01-05T00-00-00Z.tar',
  ]);
  assert.equal(last?.error, null);
});

test('a failure is remembered, nothing is deleted, and it is tried again after ten minutes', async () => {
  const backups = schedule();
  await backups.runIfDue();
  clock.advance(24 * HOUR_MS);
  isFailing = true;
  await backups.runIfDue();
  assert.equal(last?.error, 'the bucket is gone');
  isFailing = false;
  await backups.runIfDue();
  assert.equal(kept.length, 2);
  clock.advance(10 * 60_000);
  await backups.runIfDue();
  assert.equal(kept.length, 3);
  assert.equal(last?.error, null);
});

test('a backup that is not whole is not kept', async () => {
  await schedule(false).runIfDue();
  assert.match(last?.error ?? '', /not a whole backup/);
  assert.deepEqual(kept, ['notes.txt']);
});

test('a backup of the future, from before the clock was set back, does not stop new ones', async () => {
  kept.push('berth-2027-01-01T00-00-00Z.tar');
  await schedule().runIfDue();
  assert.ok(kept.includes('berth-2026-01-01T00-00-00Z.tar'));
});
