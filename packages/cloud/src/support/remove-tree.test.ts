import assert from 'node:assert/strict';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import { removeTree } from './remove-tree.ts';

/** File modes do not restrict root. */
const ORDINARY_USER = 65534;
const isRoot = process.getuid?.() === 0;

describe('removing a tree', () => {
  let base = '';
  let tree = '';
  before(() => {
    if (isRoot) process.seteuid?.(ORDINARY_USER);
  });
  after(() => {
    if (isRoot) process.seteuid?.(0);
  });
  beforeEach((context) => {
    base = mkdtempSync(join(tmpdir(), 'berth-tree-'));
    tree = join(base, 'tree');
    mkdirSync(join(tree, 'mod', 'deep'), { recursive: true });
    for (const file of ['x', 'mod/x', 'mod/deep/x']) writeFileSync(join(tree, file), '', { mode: 0o444 });
    if ('after' in context) context.after(() => rmSync(base, { recursive: true }));
  });

  test('removes all of it, and ignores a missing folder', async () => {
    await removeTree(tree);
    assert.equal(existsSync(tree), false);
    await removeTree(tree);
  });

  for (const mode of [0o555, 0o444, 0o333, 0o000]) {
    test(`removes folders of mode ${mode.toString(8).padStart(3, '0')} too`, async () => {
      for (const folder of ['mod/deep', 'mod', '']) chmodSync(join(tree, folder), mode);
      await removeTree(tree);
      assert.deepEqual(readdirSync(base), []);
    });
  }

  test('does not follow links', async () => {
    const elsewhere = join(base, 'elsewhere');
    mkdirSync(elsewhere);
    writeFileSync(join(elsewhere, 'x'), '');
    chmodSync(elsewhere, 0o555);
    symlinkSync(elsewhere, join(tree, 'mod', 'link'));
    chmodSync(join(tree, 'mod'), 0o555);
    await removeTree(tree);
    assert.deepEqual(
      [readdirSync(base), readdirSync(elsewhere), statSync(elsewhere).mode & 0o777],
      [['elsewhere'], ['x'], 0o555],
    );
    chmodSync(elsewhere, 0o755);
  });

  test("fails where something is not this user's to remove", {
    skip: !isRoot && 'NOT RUN: only root can leave something to another user',
  }, async () => {
    process.seteuid?.(0);
    mkdirSync(join(tree, 'theirs'));
    writeFileSync(join(tree, 'theirs', 'x'), '');
    process.seteuid?.(ORDINARY_USER);
    await assert.rejects(
      removeTree(tree),
      (error: NodeJS.ErrnoException) => error.code === 'EPERM' || error.code === 'EACCES',
    );
    process.seteuid?.(0);
    await removeTree(tree);
    process.seteuid?.(ORDINARY_USER);
  });
});
