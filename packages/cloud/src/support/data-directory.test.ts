import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { asUnprivilegedUser } from '../../../testing/src/unprivileged-user.ts';
import { openDataDirectory, setPassable } from './data-directory.ts';

describe('the data folder', () => {
  let base: string;
  before(() => {
    base = mkdtempSync(join(tmpdir(), 'berth-test-'));
    writeFileSync(join(base, 'file'), '');
  });
  after(() => rmSync(base, { recursive: true }));

  function refused(path: string, words: string): void {
    assert.throws(
      () => openDataDirectory(path),
      (error: Error) => {
        assert.equal(error.message, `the data folder ${path} ${words}`);
        return true;
      },
    );
  }

  test('is created for its owner only, and may exist already', () => {
    const folder = join(base, 'one', 'two');
    openDataDirectory(folder);
    openDataDirectory(folder);
    assert.equal(statSync(folder).mode & 0o777, 0o700);
  });

  test('of an earlier version is closed to other users, with its files', () => {
    const folder = join(base, 'earlier');
    mkdirSync(join(folder, 'volumes'), { recursive: true });
    writeFileSync(join(folder, 'berth.db'), '');
    for (const path of [folder, join(folder, 'volumes')]) chmodSync(path, 0o755);
    chmodSync(join(folder, 'berth.db'), 0o644);
    symlinkSync(join(base, 'file'), join(folder, 'link'));
    chmodSync(join(base, 'file'), 0o644);
    openDataDirectory(folder);
    const modes = ['', 'volumes', 'berth.db'].map((name) => statSync(join(folder, name)).mode & 0o777);
    assert.deepEqual(modes, [0o700, 0o700, 0o600]);
    assert.equal(statSync(join(base, 'file')).mode & 0o777, 0o644, 'a link is not followed');
  });

  test('lets users of accounts pass through, and not list it, only without namespaces', () => {
    const folder = join(base, 'passable');
    mkdirSync(join(folder, 'instances'), { recursive: true });
    const modes = (): number[] =>
      ['', 'instances', 'users'].map((name) => statSync(join(folder, name)).mode & 0o777);
    setPassable(folder, true);
    openDataDirectory(folder);
    assert.deepEqual(modes(), [0o711, 0o711, 0o700]);
    setPassable(folder, false);
    assert.deepEqual(modes(), [0o700, 0o700, 0o700]);
  });

  test('that others use too is left open', () => {
    const folder = join(base, 'shared');
    mkdirSync(folder);
    chmodSync(folder, 0o1777);
    openDataDirectory(folder);
    assert.equal(statSync(folder).mode & 0o1777, 0o1777);
  });

  test('that is a file or below one is refused with the setting to change', () => {
    refused(join(base, 'file'), 'is not a folder; choose another with --data or BERTH_DATA');
    refused(
      join(base, 'file', 'below'),
      'lies below something that is not a folder; choose another with --data or BERTH_DATA',
    );
  });

  test('that cannot be created is refused with the reason', async () => {
    chmodSync(base, 0o755);
    await asUnprivilegedUser(async () =>
      refused(
        join(base, 'new'),
        'cannot be written (EACCES); let this user write there, or choose another with --data or BERTH_DATA',
      ),
    );
  });

  test('is refused where the system allows no folder', { skip: process.platform !== 'linux' }, () => {
    refused(
      '/proc/nope',
      'cannot be written (ENOENT); let this user write there, or choose another with --data or BERTH_DATA',
    );
  });
});
