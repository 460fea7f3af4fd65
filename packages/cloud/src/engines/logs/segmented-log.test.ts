import assert from 'node:assert/strict';
import { appendFile, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { SegmentedLog } from './segmented-log.ts';
import type { LogLine, LogQuery } from '../../domain/log-line.ts';
import type { NewLogRecord } from './log-record.ts';

let root = '';
let count = 0;
before(async () => {
  root = await mkdtemp(join(tmpdir(), 'berth-log-book-'));
});
after(() => rm(root, { recursive: true }));

function folder(): string {
  count += 1;
  return join(root, String(count));
}

function said(line: string, ts = 1000): NewLogRecord {
  return { ts, source: 'container', line };
}

async function told(book: SegmentedLog, query: LogQuery = {}): Promise<LogLine[]> {
  return Array.fromAsync(book.lines(query));
}

async function texts(book: SegmentedLog, query: LogQuery = {}): Promise<string[]> {
  return (await told(book, query)).map((line) => line.line);
}

describe('a log book', () => {
  test('numbers the lines of both sources in one row', async () => {
    const book = await SegmentedLog.open(folder());
    await book.append([said('one', 5), { ts: 7, source: 'system', line: 'two' }]);
    await book.append([said('drei äöü', 8)]);
    assert.deepEqual(await told(book), [
      { ts: 5, seq: 1, source: 'container', line: 'one' },
      { ts: 7, seq: 2, source: 'system', line: 'two' },
      { ts: 8, seq: 3, source: 'container', line: 'drei äöü' },
    ]);
    await book.end();
  });

  test('answers what is asked for', async () => {
    const book = await SegmentedLog.open(folder());
    for (let number = 1; number <= 6; number += 1)
      await book.append([
        { ts: number * 10, source: number % 3 === 0 ? 'system' : 'container', line: `line ${number}` },
      ]);
    assert.deepEqual(await texts(book, { tail: 2 }), ['line 5', 'line 6']);
    assert.deepEqual(await texts(book, { tail: 0 }), []);
    assert.deepEqual(await texts(book, { tail: 100 }), (await texts(book)).slice(-100));
    assert.deepEqual(await texts(book, { tail: 3, source: 'container' }), ['line 2', 'line 4', 'line 5']);
    assert.deepEqual(await texts(book, { source: 'system' }), ['line 3', 'line 6']);
    assert.deepEqual(await texts(book, { after: { seq: 4 } }), ['line 5', 'line 6']);
    assert.deepEqual(await texts(book, { after: { seq: 4 }, tail: 1 }), ['line 5', 'line 6']);
    assert.deepEqual(await texts(book, { after: { ts: 40 } }), ['line 5', 'line 6']);
    assert.deepEqual(await texts(book, { after: { seq: 6 } }), []);
    await book.end();
  });

  test('time does not run backwards in it', async () => {
    const book = await SegmentedLog.open(folder());
    await book.append([said('late', 50), said('early', 40)]);
    await book.end();
    const again = await SegmentedLog.open(book.folder);
    await again.append([said('earlier', 30)]);
    assert.deepEqual(
      (await told(again)).map(({ ts }) => ts),
      [50, 50, 50],
    );
    await again.end();
  });

  test('goes on where it was, without what a crash cut off', async () => {
    const first = await SegmentedLog.open(folder());
    await first.append([said('one')], '17');
    await first.append([said('two')]);
    const [name] = await readdir(first.folder);
    await appendFile(join(first.folder, name as string), '1000 c three\n1000 c fo');
    const second = await SegmentedLog.open(first.folder);
    assert.equal(second.mark, '17');
    await second.append([said('three')], '23');
    assert.deepEqual(
      (await told(second)).map(({ seq, line }) => [seq, line]),
      [
        [1, 'one'],
        [2, 'two'],
        [3, 'three'],
      ],
    );
    await Promise.all([first.end(), second.end()]);
    assert.deepEqual(await texts(await SegmentedLog.openReadOnly(first.folder)), ['one', 'two', 'three']);
  });

  test('keeps the newest lines and says how many are missing', async () => {
    const book = await SegmentedLog.open(folder(), 8 * 200);
    for (let number = 1; number <= 500; number += 1) await book.append([said(`line ${number}`)]);
    const lines = await told(book);
    const [note, first] = lines as [LogLine, LogLine];
    assert.equal(note.source, 'system');
    assert.equal(note.line, `${first.seq - 1} lines were dropped here: the log keeps the newest lines only`);
    assert.equal(note.seq, first.seq - 1);
    assert.equal(lines.at(-1)?.line, 'line 500');
    assert.equal(lines.length, 500 - first.seq + 2);
    assert.ok(lines.length > 20 && lines.length < 100, `${lines.length} lines`);
    assert.deepEqual(await texts(book, { tail: 1 }), ['line 500']);
    assert.equal((await told(book, { source: 'container' }))[0]?.seq, first.seq);
    await book.end();
  });

  test('lines that were never written down count as dropped', async () => {
    const book = await SegmentedLog.open(folder());
    await book.append([said('one')]);
    await book.skipLines(41, 'far');
    await book.append([said('last')]);
    assert.deepEqual(
      (await told(book)).map(({ seq, line }) => [seq, line]),
      [
        [1, 'one'],
        [42, '41 lines were dropped here: the log keeps the newest lines only'],
        [43, 'last'],
      ],
    );
    await book.end();
    const again = await SegmentedLog.open(book.folder);
    assert.deepEqual([again.mark, again.nextSeq], ['far', 44]);
    await again.end();
  });

  test('a follower is told everything once, across files, until the end', async () => {
    const book = await SegmentedLog.open(folder(), 8 * 400);
    const following = Array.fromAsync(book.lines({ follow: true }));
    for (let number = 1; number <= 60; number += 1) await book.append([said(`line ${number}`)]);
    await book.end();
    assert.deepEqual(
      (await following).map(({ seq }) => seq),
      Array.from({ length: 60 }, (_, index) => index + 1),
    );
  });

  test('a follower leaves on its signal', async () => {
    const book = await SegmentedLog.open(folder());
    await book.append([said('one')]);
    const leaving = new AbortController();
    const lines: string[] = [];
    for await (const { line } of book.lines({ follow: true }, leaving.signal)) {
      lines.push(line);
      setImmediate(() => leaving.abort());
    }
    assert.deepEqual(lines, ['one']);
    await book.end();
  });

  test('of an unknown log there is nothing to tell', async () => {
    assert.deepEqual(await texts(await SegmentedLog.openReadOnly(folder()), { follow: true }), []);
  });

  test('whatever is written in whatever batches is read again, whoever opens it', async () => {
    const batch = fc.array(
      fc.string({ unit: 'binary', maxLength: 40 }).map((line) => line.replaceAll('\n', '')),
      { maxLength: 5 },
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ batch, reopen: fc.boolean() }), { maxLength: 12 }),
        fc.nat(30),
        async (steps, tail) => {
          let book = await SegmentedLog.open(folder());
          for (const [index, step] of steps.entries()) {
            await book.append(
              step.batch.map((line) => said(line)),
              String(index),
            );
            if (!step.reopen) continue;
            await book.end();
            book = await SegmentedLog.open(book.folder);
            assert.equal(book.mark, String(index));
          }
          const all = steps.flatMap((step) => step.batch);
          assert.deepEqual(await texts(book), all);
          assert.deepEqual(await texts(book, { tail }), tail === 0 ? [] : all.slice(-tail));
          await book.end();
        },
      ),
      { numRuns: 50 },
    );
  });
});
