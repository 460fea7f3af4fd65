import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ManualClock } from '../support/clock.ts';
import { KeptLogs } from './kept-logs.ts';

test('the log of a removed instance is kept for its time', async () => {
  const path = await mkdtemp(join(tmpdir(), 'berth-kept-logs-'));
  const clock = new ManualClock();
  const logs = new KeptLogs(path, 1000, clock);
  const there = new Set(['running']);
  for (const id of ['running', 'removed', 'forgotten', 'again']) await mkdir(logs.folder(id));
  await logs.age('removed');
  await logs.age('again');
  await logs.age('never-there');
  await logs.keep('again');
  there.add('again');
  clock.advance(999);
  await logs.sweep((id) => there.has(id));
  assert.deepEqual((await readdir(path)).sort(), ['again', 'forgotten', 'removed', 'running']);
  clock.advance(1);
  await logs.sweep((id) => there.has(id));
  assert.deepEqual(
    (await readdir(path)).sort(),
    ['again', 'forgotten', 'running'],
    'what nobody knew begins to age when it is found',
  );
  clock.advance(1000);
  await logs.sweep((id) => there.has(id));
  assert.deepEqual((await readdir(path)).sort(), ['again', 'running']);
  await logs.forget('again');
  await logs.forget('never-there');
  assert.deepEqual(await readdir(path), ['running'], 'what is forgotten goes at once');
  await rm(path, { recursive: true });
});
