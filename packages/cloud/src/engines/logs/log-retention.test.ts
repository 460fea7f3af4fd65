import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ManualClock } from '../../support/clock.ts';
import { LogRetention } from './log-retention.ts';

test('the log of a removed instance is kept for the retention time', async () => {
  const path = await mkdtemp(join(tmpdir(), 'berth-kept-logs-'));
  const clock = new ManualClock();
  const logs = new LogRetention(path, 1000, clock);
  const existing = new Set(['running']);
  for (const id of ['running', 'removed', 'forgotten', 'again']) await mkdir(logs.folder(id));
  await logs.startRetention('removed');
  await logs.startRetention('again');
  await logs.startRetention('never-existing');
  await logs.retain('again');
  existing.add('again');
  clock.advance(999);
  await logs.deleteExpired((id) => existing.has(id));
  assert.deepEqual((await readdir(path)).sort(), ['again', 'forgotten', 'removed', 'running']);
  clock.advance(1);
  await logs.deleteExpired((id) => existing.has(id));
  assert.deepEqual(
    (await readdir(path)).sort(),
    ['again', 'forgotten', 'running'],
    'the retention of an unknown log starts when it is found',
  );
  clock.advance(1000);
  await logs.deleteExpired((id) => existing.has(id));
  assert.deepEqual((await readdir(path)).sort(), ['again', 'running']);
  await logs.delete('again');
  await logs.delete('never-existing');
  assert.deepEqual(await readdir(path), ['running'], 'delete does not wait for the retention');
  await rm(path, { recursive: true });
});
