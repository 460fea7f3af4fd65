import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { asUnprivilegedUser } from '../../../testing/src/unprivileged-user.ts';
import { openDataDirectory } from './data-directory.ts';

describe('the data folder', () => {
  let place: string;
  before(() => {
    place = mkdtempSync(join(tmpdir(), 'berth-test-'));
    writeFileSync(join(place, 'file'), '');
  });
  after(() => rmSync(place, { recursive: true }));

  function refused(path: string, words: string): void {
    assert.throws(
      () => openDataDirectory(path),
      (error: Error) => {
        assert.equal(error.message, `the data folder ${path} ${words}`);
        return true;
      },
    );
  }

  test('is made for its owner alone, and may be there already', () => {
    const folder = join(place, 'one', 'two');
    openDataDirectory(folder);
    openDataDirectory(folder);
    assert.equal(statSync(folder).mode & 0o777, 0o700);
  });

  test('that is a file, or lies below one, is told with the knob that names it', () => {
    refused(join(place, 'file'), 'is not a folder; choose another with --data or BERTH_DATA');
    refused(
      join(place, 'file', 'below'),
      'lies below something that is not a folder; choose another with --data or BERTH_DATA',
    );
  });

  test('that cannot be made is told with the reason', async () => {
    chmodSync(place, 0o755);
    await asUnprivilegedUser(async () =>
      refused(
        join(place, 'new'),
        'cannot be written (EACCES); let this user write there, or choose another with --data or BERTH_DATA',
      ),
    );
  });

  test('is told where the system lets nobody make one', { skip: process.platform !== 'linux' }, () => {
    refused(
      '/proc/nope',
      'cannot be written (ENOENT); let this user write there, or choose another with --data or BERTH_DATA',
    );
  });
});
