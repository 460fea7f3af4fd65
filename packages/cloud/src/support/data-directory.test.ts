import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { asUnprivilegedUser } from '../../../testing/src/unprivileged-user.ts';
import { openDataDirectory } from './data-directory.ts';

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
