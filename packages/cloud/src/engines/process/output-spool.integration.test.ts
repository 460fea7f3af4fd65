import assert from 'node:assert/strict';
import { appendFileSync, utimesSync } from 'node:fs';
import { appendFile, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { ManualClock } from '../../support/clock.ts';
import { SegmentedLog } from '../logs/segmented-log.ts';
import { OutputSpool } from './output-spool.ts';

let root = '';
let count = 0;
before(async () => {
  root = await mkdtemp(join(tmpdir(), 'berth-spool-'));
});
after(() => rm(root, { recursive: true }));

const clock = new ManualClock();

async function spoolOf(
  content: string | Buffer,
  maxBytes?: number,
): Promise<{ path: string; log: SegmentedLog; spool: OutputSpool }> {
  count += 1;
  const path = join(root, `${count}.output`);
  await writeFile(path, content);
  const log = await SegmentedLog.open(join(root, `${count}.log`), maxBytes);
  return { path, log, spool: new OutputSpool({ path, run: 'run1', log, clock }) };
}

async function texts(log: SegmentedLog): Promise<string[]> {
  return (await Array.fromAsync(log.lines())).map(({ line }) => line);
}

describe('copying output to the log', () => {
  test('a partial line is logged when it is complete or the output has ended', async () => {
    const { path, log, spool } = await spoolOf('one\r\n\ntw');
    await spool.drain();
    assert.deepEqual(await texts(log), ['one', '']);
    await appendFile(path, 'o\nthree');
    await spool.drain();
    assert.deepEqual(await texts(log), ['one', '', 'two']);
    await spool.finish();
    assert.deepEqual(await texts(log), ['one', '', 'two', 'three']);
    await log.end();
  });

  test('a line is not dated before it was written', async () => {
    const { path, log } = await spoolOf('first\n');
    let now = clock.now();
    const writtenAt = new Map<string, number>();
    // Each time the clock is read, the instance writes another line.
    const writingClock = {
      now: () => {
        if (writtenAt.size === 4) return now;
        const line = `line ${writtenAt.size}`;
        appendFileSync(path, `${line}\n`);
        writtenAt.set(line, (now += 1));
        return now - 1;
      },
    };
    const spool = new OutputSpool({ path, run: 'run1', log, clock: writingClock });
    await spool.finish();
    const lines = await Array.fromAsync(log.lines());
    assert.deepEqual(
      lines.map(({ line }) => line),
      ['first', 'line 0', 'line 1', 'line 2', 'line 3'],
    );
    for (const { line, ts } of lines.slice(1))
      assert.ok(ts >= (writtenAt.get(line) ?? Infinity), `${line} has ${ts}`);
    await log.end();
  });

  test('output from before the spool was opened has the time of the file', async () => {
    const { path, log } = await spoolOf('before\n');
    utimesSync(path, new Date(1_700_000_000_000), new Date(1_700_000_000_000));
    const spool = new OutputSpool({ path, run: 'run1', log, clock });
    await spool.drain();
    await appendFile(path, 'after\n');
    await spool.finish();
    assert.deepEqual(
      (await Array.fromAsync(log.lines())).map(({ line, ts }) => [line, ts]),
      [
        ['before', 1_700_000_000_000],
        ['after', clock.now()],
      ],
    );
    await log.end();
  });

  test('continues at the saved offset, in the same run only', async () => {
    const { path, log, spool } = await spoolOf('one\ntwo\nthr');
    await spool.drain();
    await spool.close();
    await spool.drain();
    await appendFile(path, 'ee\n');
    const next = new OutputSpool({ path, run: 'run1', log, clock });
    await next.finish();
    assert.deepEqual(await texts(log), ['one', 'two', 'three']);
    await writeFile(path, 'anew\n');
    await new OutputSpool({ path, run: 'run2', log, clock }).finish();
    assert.deepEqual(await texts(log), ['one', 'two', 'three', 'anew']);
    await log.end();
  });

  test('a line over the limit is split into pieces', async () => {
    const long = 'x'.repeat(600_000);
    const { log, spool } = await spoolOf(`before\n${long}\nafter\n`);
    await spool.finish();
    const lines = await texts(log);
    assert.deepEqual([lines[0], lines.at(-1), lines.slice(1, -1).join('')], ['before', 'after', long]);
    assert.ok(lines.every((line) => line.length <= 65_536));
    const exact = await spoolOf(`${'y'.repeat(65_536)}\nend\n`);
    await exact.spool.finish();
    assert.deepEqual(
      (await texts(exact.log)).map((line) => line.length),
      [65_536, 3],
    );
    await Promise.all([log.end(), exact.log.end()]);
  });

  test('of too much output the newest lines are kept and the dropped ones counted', async () => {
    const written = Array.from({ length: 200_000 }, (_, index) => `line ${index + 1}`);
    const { log, spool } = await spoolOf(`${written.join('\n')}\n`, 200_000);
    await spool.finish();
    const lines = await Array.fromAsync(log.lines());
    const [note, first] = lines;
    assert.equal(lines.at(-1)?.line, 'line 200000');
    assert.equal(first?.line, `line ${first?.seq}`);
    assert.equal(
      note?.line,
      `${(first?.seq ?? 0) - 1} lines were dropped here: the log keeps the newest lines only`,
    );
    assert.equal(lines.length, 200_000 - (first?.seq ?? 0) + 2);
    await log.end();
  });

  test('100 MB of output use little disk space', async () => {
    const { path, log, spool } = await spoolOf('');
    const block = Buffer.from(`${'z'.repeat(99)}\n`.repeat(50_000));
    for (let round = 0; round < 20; round += 1) {
      await appendFile(path, block);
      await spool.drain();
    }
    const { blocks, size } = await stat(path);
    assert.equal(size, 100_000_000);
    let kept = 0;
    for (const segment of log.segments) kept += (await stat(segment.path)).size;
    assert.ok(kept < 20_000_000, `${kept} bytes of log`);
    const cannot = (await texts(log)).some((line) => line.includes('cannot be given back'));
    assert.ok(cannot || blocks * 512 < 10_000_000, `${blocks * 512} bytes of output`);
    const [note] = await Array.fromAsync(log.lines());
    assert.match(note?.line ?? '', /^\d+ lines were dropped here/);
    await spool.finish();
    await log.end();
  });

  test('the log holds the written lines, however the writes are split', async () => {
    const pieces = fc.array(fc.record({ text: fc.stringMatching(/^[ab\n]{0,12}$/), restart: fc.boolean() }), {
      maxLength: 10,
    });
    await fc.assert(
      fc.asyncProperty(pieces, async (steps) => {
        const { path, log, spool: first } = await spoolOf('');
        let spool = first;
        for (const { text, restart } of steps) {
          await appendFile(path, text);
          await spool.drain();
          if (!restart) continue;
          await spool.close();
          spool = new OutputSpool({ path, run: 'run1', log, clock });
        }
        await spool.finish();
        const expected = steps
          .map(({ text }) => text)
          .join('')
          .split('\n');
        if (expected.at(-1) === '') expected.pop();
        assert.deepEqual(await texts(log), expected);
        await log.end();
      }),
      { numRuns: 40 },
    );
  });
});
