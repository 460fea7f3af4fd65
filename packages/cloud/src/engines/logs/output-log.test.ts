import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ManualClock } from '../../support/clock.ts';
import { OutputLog } from './output-log.ts';
import { SegmentedLog } from './segmented-log.ts';
import type { SourceLine } from './source-line.ts';

const MEGABYTE = 1_000_000;

test('output that comes too fast is read no faster than the limit, and the log says so', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-output-log-'));
  t.after(() => rm(folder, { recursive: true }));
  const clock = new ManualClock();
  const [ended, waits] = [Promise.withResolvers<void>(), [] as number[]];
  let read = 0;
  const log = new OutputLog({
    source: {
      containerId: 'c1',
      lostLines: 'lost',
      isGone: () => false,
      // A container that has written 40 MB, one megabyte at a time.
      async *read({ follow }): AsyncGenerator<SourceLine[]> {
        if (follow !== true) return;
        for (; read < 40; read += 1)
          yield [{ stamp: `t${read}`, ts: clock.now(), line: Buffer.alloc(MEGABYTE - 1, 'x') }];
        ended.resolve();
      },
    },
    folder,
    clock,
    bytesPerSecond: 2 * MEGABYTE,
    onStreamEnd: async () => false,
    onProblem: (what, error) => assert.fail(`${what}: ${error}`),
    pause: async (milliseconds) => {
      waits.push(milliseconds);
      clock.advance(milliseconds);
    },
  });
  const kept = await SegmentedLog.open(folder, 100 * MEGABYTE);
  log.captureOutput(kept);
  await ended.promise;
  await log.detach();
  // 16 MB may come at once. The other 24 MB take 12 s.
  const waited = waits.reduce((sum, one) => sum + one, 0);
  assert.ok(waited >= 11_000 && waited <= 14_000, `waited ${waited} ms`);
  const said = (await Array.fromAsync((await SegmentedLog.openReadOnly(folder)).lines()))
    .filter(({ source }) => source === 'system')
    .map(({ line }) => line);
  assert.equal(said.length, 1);
  assert.match(said[0] ?? '', /more than 2\.0 MB\/s/);
});

test('a stream that ends again and again while the container runs is asked for more and more seldom', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-output-log-'));
  t.after(() => rm(folder, { recursive: true }));
  const clock = new ManualClock();
  const [ended, waits] = [Promise.withResolvers<void>(), [] as number[]];
  let read = 0;
  const log = new OutputLog({
    source: {
      containerId: 'c1',
      lostLines: 'lost',
      isGone: () => false,
      // The seventh lasts.
      async *read(): AsyncGenerator<SourceLine[]> {
        read += 1;
        if (read === 7) clock.advance(60_000);
      },
    },
    folder,
    clock,
    onStreamEnd: async () => {
      if (read === 8) ended.resolve();
      return read < 8;
    },
    onProblem: (what, error) => assert.fail(`${what}: ${error}`),
    pause: async (milliseconds) => void waits.push(milliseconds),
  });
  log.captureOutput(await SegmentedLog.open(folder));
  await ended.promise;
  await log.detach();
  assert.deepEqual(waits, [500, 1_000, 5_000, 15_000, 15_000, 15_000, 100]);
});
