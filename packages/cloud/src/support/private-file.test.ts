import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { readIfExists, writePrivateFile } from './private-file.ts';

describe('a private file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-private-'));
  const file = join(folder, 'key');
  after(() => rmSync(folder, { recursive: true }));

  test('is readable by its owner only, whatever the umask and the previous mode', () => {
    const mask = process.umask(0);
    try {
      writePrivateFile(file, 'one\n');
      assert.equal(statSync(file).mode & 0o777, 0o600);
      const open = join(folder, 'open');
      writeFileSync(open, 'old', { mode: 0o666 });
      writePrivateFile(open, 'new');
      assert.equal(statSync(open).mode & 0o777, 0o600);
    } finally {
      process.umask(mask);
    }
  });

  test('is replaced atomically and leaves no temporary file', () => {
    writePrivateFile(file, 'a longer text\n');
    writePrivateFile(file, 'short\n');
    assert.equal(readIfExists(file), 'short\n');
    assert.deepEqual(readdirSync(folder).sort(), ['key', 'open']);
  });

  test('that is missing is undefined; one that cannot be read is an error', () => {
    assert.equal(readIfExists(join(folder, 'missing')), undefined);
    mkdirSync(join(folder, 'folder'));
    assert.throws(() => readIfExists(join(folder, 'folder')), /EISDIR/);
  });
});
