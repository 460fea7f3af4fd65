import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { ManualClock } from '../../support/clock.ts';
import { randomIds } from '../../support/ids.ts';
import { VolumeContents } from './contents.ts';

describe('the data of removed volumes', () => {
  let data: string;
  let bin: string;
  let problems: unknown[];
  let contents: VolumeContents;
  beforeEach(() => {
    data = mkdtempSync(join(tmpdir(), 'berth-contents-'));
    bin = join(data, 'volumes', '.s3', '.removed');
    problems = [];
    contents = new VolumeContents({ clock: new ManualClock(), ids: randomIds }, data, (error) => problems.push(error));
  });
  afterEach(() => rmSync(data, { recursive: true }));

  test('is wiped, with what an earlier Berth left', async () => {
    mkdirSync(join(bin, 'left'), { recursive: true });
    writeFileSync(join(bin, 'left', 'file'), 'x');
    await contents.wipeRemoved();
    assert.deepEqual([readdirSync(bin), problems], [[], []]);
  });

  test('is nothing to worry about where no volume was ever removed', async () => {
    await contents.wipeRemoved();
    assert.deepEqual(problems, []);
  });

  test('is wiped also where that of another cannot be', async () => {
    for (const name of ['a-0', 'z-0']) mkdirSync(join(bin, name), { recursive: true });
    const rescued = tooDeepFor(join(bin, 'b-0'));
    await contents.wipeRemoved();
    assert.deepEqual(readdirSync(bin), ['b-0']);
    assert.equal(problems.length, 1);
    renameSync(rescued, join(data, 'rescued'));
    await contents.wipeRemoved();
    assert.ok(!existsSync(join(bin, 'b-0')));
  });
});

/** Makes folders whose paths are longer than the system takes, so that nobody can remove them, root included. Answers the one that has to be moved away for that. */
function tooDeepFor(folder: string): string {
  const half = Array.from({ length: 10 }, () => 'n'.repeat(250));
  const outer = join(folder, ...half);
  const inner = join(folder, 'inner');
  mkdirSync(outer, { recursive: true });
  mkdirSync(join(inner, ...half), { recursive: true });
  renameSync(inner, join(outer, 'inner'));
  return join(outer, 'inner');
}
