import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { tarOf } from './tar.ts';

test('tar unpacks it: names in any script, long names, empty and odd sizes', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-test-'));
  try {
    const contents = {
      'plain.txt': 'hello',
      '重み ü <b>.bin': 'x'.repeat(513),
      [`${'long-name-'.repeat(14)}.txt`]: 'y'.repeat(1024),
      empty: '',
    };
    const files = Object.entries(contents).map(([name, content]) => new File([content], name));
    const archive = join(folder, 'archive.tar');
    writeFileSync(archive, Buffer.from(await tarOf(files).arrayBuffer()));
    execFileSync('tar', ['-xf', archive, '-C', folder]);
    rmSync(archive);
    assert.deepEqual(
      Object.fromEntries(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')])),
      contents,
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
});
