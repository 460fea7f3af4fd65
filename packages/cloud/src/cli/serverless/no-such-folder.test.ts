import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { noSuchFolder } from './no-such-folder.ts';

test('a folder that is spelled alike is named, as the user writes paths', async (t) => {
  const parent = await mkdtemp(join(tmpdir(), 'berth-folders-'));
  t.after(() => rm(parent, { recursive: true }));
  await mkdir(join(parent, 'worker'));
  const message = async (path: string): Promise<string> =>
    (await noSuchFolder(path, '; or an image')).message;
  assert.equal(
    await message(`${parent}/wroker/`),
    `there is no folder ${parent}/wroker/; did you mean ${parent}/worker?`,
  );
  assert.equal(await message(`${parent}/other`), `there is no folder ${parent}/other; or an image`);
  assert.equal(await message('nowhere/at/all'), 'there is no folder nowhere/at/all; or an image');
});
