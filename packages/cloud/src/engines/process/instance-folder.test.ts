import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { InstanceFolder } from './instance-folder.ts';

test("an account cannot change its instance's root while Berth fills it", {
  skip: process.getuid?.() !== 0,
}, () => {
  const base = mkdtempSync(join(tmpdir(), 'berth-folder-'));
  try {
    const folder = new InstanceFolder(join(base, 'one'));
    folder.create({ uid: 60_123, gid: 60_123 });
    assert.deepEqual([statSync(folder.root).uid, statSync(folder.root).mode & 0o777], [0, 0o700]);
    assert.equal(statSync(folder.tmp).uid, 60_123);
  } finally {
    rmSync(base, { recursive: true });
  }
});
