import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { appendFile, mkdtemp, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { ManualClock } from '../../support/clock.ts';
import { SegmentedLog } from '../logs/segmented-log.ts';
import { waitFor } from '../../../../testing/src/wait-for.ts';
import { OutputSpool } from './output-spool.ts';

let root = '';
let count = 0;
before(async () => {
  root = await mkdtemp(join(tmpdir(), 'berth-spool-'));
});
after(() => rm(root, { recursive: true }));

const clock = new ManualClock();
const WRITER = fileURLToPath(new URL('output-writer.sh', import.meta.url));

interface Fixture {
  folder: string;
  log: SegmentedLog;
  spool: OutputSpool;
  /** Another one for the same output, as after a restart. */
  reopen(run?: string): OutputSpool;
  write(name: string, content: string | Buffer): string;
}

async function fixture(maxBytes?: number, bytesPerSecond = 1e12): Promise<Fixture> {
  count += 1;
  const folder = join(root, `${count}.output`);
  mkdirSync(folder);
  const log = await SegmentedLog.open(join(root, `${count}.log`), maxBytes);
  const reopen = (run = 'run1'): OutputSpool => new OutputSpool({ folder, run, log, clock, bytesPerSecond });
  return {
    folder,
    log,
    spool: reopen(),
    reopen,
    write: (name, content) => {
      const path = join(folder, name);
      writeFileSync(path, content);
      return path;
    },
  };
}

async function spoolOf(content: string | Buffer): Promise<Fixture & { path: string }> {
  const made = await fixture();
  return { ...made, path: made.write('1.0', content) };
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

  test('continues at the saved offset, in the same run only', async () => {
    const { path, log, spool, reopen } = await spoolOf('one\ntwo\nthr');
    await spool.drain();
    await spool.close();
    await spool.drain();
    await appendFile(path, 'ee\n');
    await reopen().finish();
    assert.deepEqual(await texts(log), ['one', 'two', 'three']);
    await writeFile(path, 'anew\n');
    await reopen('run2').finish();
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
    const folder = join(root, `${count}.output`);
    await new OutputSpool({ folder, run: 'run1', log, clock: writingClock, bytesPerSecond: 1e12 }).finish();
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
    const { path, log, spool } = await spoolOf('before\n');
    utimesSync(path, new Date(1_700_000_000_000), new Date(1_700_000_000_000));
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

  test('goes on with the next file, in the middle of a line, and deletes what it has read', async () => {
    const { folder, log, spool, write } = await fixture();
    write('1.0', 'one\ntw');
    await spool.drain();
    write('2.1', 'o\nthree\n');
    await spool.drain();
    assert.deepEqual(await texts(log), ['one', 'two', 'three']);
    assert.deepEqual(readdirSync(folder), ['2.1']);
    await spool.finish();
    await log.end();
  });

  test('after a restart, what the writer has deleted meanwhile is counted', async () => {
    const { folder, log, spool, reopen, write } = await fixture();
    await rename(write('1.0', 'one\ntwo\n'), join(folder, '3.0'));
    await spool.drain();
    await spool.close();
    await rm(join(folder, '3.0'));
    write('7.12345', 'newest\n');
    await reopen().finish();
    assert.deepEqual(await texts(log), [
      'one',
      'two',
      '[berth: 12,343 lines dropped, too much was written while Berth was not running]',
      'newest',
    ]);
    await log.end();
  });

  test('of output that comes too fast the newest is kept and the rest counted, without reading it', async () => {
    const { folder, log, write } = await fixture(8_000);
    const turned = new ManualClock();
    const pauses: number[] = [];
    const spool = new OutputSpool({
      folder,
      run: 'run1',
      log,
      clock: turned,
      bytesPerSecond: 1_000_000,
      pause: async (milliseconds) => {
        pauses.push(milliseconds);
        turned.advance(milliseconds);
      },
    });
    write('1.0', `${'x'.repeat(1_300_000)}\n`);
    // It may not be read: a folder in place of a file.
    mkdirSync(join(root, `${count}.output`, '2.1'));
    mkdirSync(join(root, `${count}.output`, '3.600000'));
    write('4.900000', 'new\n');
    write('5.900001', 'newest\n');
    await spool.drain();
    assert.equal(pauses.length, 1);
    assert.deepEqual((await texts(log)).slice(-3), [
      '[berth: 900,000 lines dropped, it wrote more than 1.0 MB/s]',
      'new',
      'newest',
    ]);
    await spool.finish();
    await log.end();
  });

  test('an instance of an earlier version has a single file', async () => {
    count += 1;
    const folder = join(root, `${count}.output`);
    await writeFile(folder, 'one\ntwo\nthree\n');
    const log = await SegmentedLog.open(join(root, `${count}.log`));
    await log.append([{ ts: 1, source: 'container', line: 'one' }], 'run1 4');
    await new OutputSpool({ folder, run: 'run1', log, clock, bytesPerSecond: 1e12 }).finish();
    assert.deepEqual(await texts(log), ['one', 'two', 'three']);
    await log.end();
  });

  test('the log holds the written lines, however the writes are split', async () => {
    const pieces = fc.array(
      fc.record({
        text: fc.stringMatching(/^[ab\n]{0,12}$/),
        restart: fc.boolean(),
        nextFile: fc.boolean(),
      }),
      { maxLength: 10 },
    );
    await fc.assert(
      fc.asyncProperty(pieces, async (steps) => {
        const { folder, log, spool: first, reopen } = await fixture();
        let spool = first;
        let [number, lines, linesBefore] = [1, 0, 0];
        for (const { text, restart, nextFile } of steps) {
          if (nextFile) {
            number += 1;
            linesBefore = lines;
          }
          await appendFile(join(folder, `${number}.${linesBefore}`), text);
          lines += text.split('\n').length - 1;
          await spool.drain();
          if (!restart) continue;
          await spool.close();
          spool = reopen();
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

describe('the output writer', { skip: process.platform !== 'linux' }, () => {
  async function written(input: Iterable<Buffer | string>, kilobytes = 64, files = 4): Promise<string> {
    count += 1;
    const folder = join(root, `${count}.output`);
    mkdirSync(folder);
    const writer = spawn(
      '/bin/sh',
      [WRITER, folder, join(root, 'no-pipe'), String(kilobytes), String(files)],
      {
        env: { PATH: '/usr/bin:/bin' },
        stdio: ['pipe', 'ignore', 'inherit'],
      },
    );
    const ended = once(writer, 'exit');
    for (const piece of input) if (!writer.stdin.write(piece)) await once(writer.stdin, 'drain');
    writer.stdin.end();
    await ended;
    return folder;
  }

  test('keeps the newest files, and each says how many lines came before it', async () => {
    const line = `${'z'.repeat(99)}\n`;
    const folder = await written(Array.from({ length: 20 }, () => line.repeat(1_000)));
    const files = readdirSync(folder);
    assert.ok(files.length <= 4, files.join(' '));
    let bytes = 0;
    for (const name of files) bytes += (await stat(join(folder, name))).size;
    assert.ok(bytes < 4 * 2 * 65_536, `${bytes} bytes`);
    const log = await SegmentedLog.open(join(root, `${count}.log`));
    await new OutputSpool({ folder, run: 'run1', log, clock, bytesPerSecond: 1e12 }).finish();
    const [note, ...kept] = await texts(log);
    const dropped = Number(/^\[berth: ([\d,]+) lines dropped/.exec(note ?? '')?.[1]?.replaceAll(',', ''));
    // The first kept line may be the end of one whose begin was dropped; its newline counts as kept.
    assert.equal(dropped + kept.length, 20_000);
    await log.end();
  });

  test('is started again where it was killed: the instance notices nothing, and no line is lost', async () => {
    count += 1;
    const folder = join(root, `${count}.output`);
    mkdirSync(folder);
    const writer = spawn('/bin/sh', [WRITER, folder, join(root, 'no-pipe'), '64', '4'], {
      env: { PATH: '/usr/bin:/bin' },
      stdio: ['pipe', 'ignore', 'inherit'],
    });
    const ended = once(writer, 'exit');
    const log = await SegmentedLog.open(join(root, `${count}.log`));
    const spool = new OutputSpool({ folder, run: 'run1', log, clock, bytesPerSecond: 1e12 });
    for (const line of ['one', 'two', 'three']) {
      writer.stdin.write(`${line}\n${line} be`);
      await waitFor(`${line} is logged`, async () => {
        await spool.drain();
        return (await texts(log)).includes(line);
      });
      for (const pid of descendants(writer.pid ?? 0)) process.kill(pid, 'SIGKILL');
      writer.stdin.write('gins\n');
    }
    writer.stdin.end();
    assert.deepEqual(await ended, [0, null]);
    await spool.finish();
    assert.deepEqual(
      await texts(log),
      ['one', 'two', 'three'].flatMap((line) => [line, `${line} begins`]),
    );
    await log.end();
  });

  test('ends with its input, and keeps a last line without a newline', async () => {
    const folder = await written(['one\n', 'two']);
    assert.deepEqual(readdirSync(folder), ['1.0']);
    assert.equal((await stat(join(folder, '1.0'))).size, 7);
  });
});

/** The processes that this one has started, and those that they have. */
function descendants(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    .split(' ')
    .filter(Boolean)
    .map(Number);
  return children.flatMap((child) => [child, ...descendants(child)]);
}
