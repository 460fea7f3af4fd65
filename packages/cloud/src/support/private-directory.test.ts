import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createPrivateDirectory } from './private-directory.ts';

describe('a private folder', () => {
  let place: string;
  before(() => {
    place = mkdtempSync(join(tmpdir(), 'berth-test-'));
  });
  after(() => rmSync(place, { recursive: true }));

  test('is made with those above it, and may be there already', () => {
    const deep = join(place, 'one', 'two', 'three');
    createPrivateDirectory(deep);
    createPrivateDirectory(deep);
    createPrivateDirectory(`${deep}/`);
    for (const folder of [deep, join(place, 'one')]) assert.equal(statSync(folder).mode & 0o777, 0o700);
  });

  test('is refused where none can be, without trying for ever', {
    skip: process.platform !== 'linux',
  }, () => {
    writeFileSync(join(place, 'file'), '');
    symlinkSync(join(place, 'nowhere'), join(place, 'dangling'));
    for (const path of [
      join(place, 'file'),
      join(place, 'file', 'below'),
      join(place, 'dangling', 'below'),
      '/proc/nope',
      '/proc/nope/deeper',
    ])
      assert.throws(() => createPrivateDirectory(path), /EEXIST|ENOTDIR|ENOENT/, path);
  });
});
