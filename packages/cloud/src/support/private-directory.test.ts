import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createPrivateDirectory } from './private-directory.ts';

describe('a private folder', () => {
  let base: string;
  before(() => {
    base = mkdtempSync(join(tmpdir(), 'berth-test-'));
  });
  after(() => rmSync(base, { recursive: true }));

  test('is created with its parents, and may exist already', () => {
    const deep = join(base, 'one', 'two', 'three');
    createPrivateDirectory(deep);
    createPrivateDirectory(deep);
    createPrivateDirectory(`${deep}/`);
    for (const folder of [deep, join(base, 'one')]) assert.equal(statSync(folder).mode & 0o777, 0o700);
  });

  test('is refused where it cannot be created, without an endless loop', {
    skip: process.platform !== 'linux',
  }, () => {
    writeFileSync(join(base, 'file'), '');
    symlinkSync(join(base, 'nowhere'), join(base, 'dangling'));
    for (const path of [
      join(base, 'file'),
      join(base, 'file', 'below'),
      join(base, 'dangling', 'below'),
      '/proc/nope',
      '/proc/nope/deeper',
    ])
      assert.throws(() => createPrivateDirectory(path), /EEXIST|ENOTDIR|ENOENT/, path);
  });
});
