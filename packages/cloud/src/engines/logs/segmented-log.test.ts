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
  root = await mkdtemp(join(tmpdir(), 'berth-log-'));
});
after(() => rm(root, { recursive: true }));

function folder(): string {
  count += 1;
  return join(root, String(count));
}

function record(line: string, ts = 1000): NewLogRecord {
  return { ts, source: 'container', line };
}

async function readAll(log: SegmentedLog, query: LogQuery = {}): Promise<LogLine[]> {
  return Array.fromAsync(log.lines(query));
}

async function texts(log: SegmentedLog, query: LogQuery = {}): Promise<string[]> {
  return (await readAll(log, query)).map((line) => line.line);
}

describe('segmented log', () => {
  test('numbers the lines of both sources in one sequence', async () => {
    const log = await SegmentedLog.open(folder());
    await log.append([record('one', 5), { ts: 7, source: 'system', line: 'two' }]);
    await log.append([record('drei äöü', 8)]);
    assert.deepEqual(await readAll(log), [
      { ts: 5, seq: 1, source: 'container', line: 'one' },
      { ts: 7, seq: 2, source: 'system', line: 'two' },
      { ts: 8, seq: 3, source: 'container', line: 'drei äöü' },
    ]);
    await log.end();
  });

  test('filters by tail, source, sequence number and time', async () => {
    const log = await SegmentedLog.open(folder());
    for (let number = 1; number <= 6; number += 1)
      await log.append([
        { ts: number * 10, source: number % 3 === 0 ? 'system' : 'container', line: `line ${number}` },
      ]);
    assert.deepEqual(await texts(log, { tail: 2 }), ['line 5', 'line 6']);
    assert.deepEqual(await texts(log, { tail: 0 }), []);
    assert.deepEqual(await texts(log, { tail: 100 }), (await texts(log)).slice(-100));
    assert.deepEqual(await texts(log, { tail: 3, source: 'container' }), ['line 2', 'line 4', 'line 5']);
    assert.deepEqual(await texts(log, { source: 'system' }), ['line 3', 'line 6']);
    assert.deepEqual(await texts(log, { after: { seq: 4 } }), ['line 5', 'line 6']);
    assert.deepEqual(await texts(log, { after: { seq: 4 }, tail: 1 }), ['line 5', 'line 6']);
    assert.deepEqual(await texts(log, { after: { ts: 40 } }), ['line 5', 'line 6']);
    assert.deepEqual(await texts(log, { after: { seq: 6 } }), []);
    await log.end();
  });

  test('is read backwards page by page, across segments, to the oldest line that is kept', async () => {
    const log = await SegmentedLog.open(folder(), 8 * 200);
    for (let number = 1; number <= 300; number += 1) await log.append([record(`line ${number}`, number)]);
    const kept = (await readAll(log, { tail: 1000 })).map(({ seq }) => seq);
    const seen: number[] = [];
    for (let before = Infinity; ; ) {
      const page = await readAll(log, { tail: 7, ...(before !== Infinity && { before: { seq: before } }) });
      if (page.length === 0) break;
      assert.ok(page.length <= 7);
      seen.unshift(...page.map(({ seq }) => seq));
      before = page[0]?.seq ?? 0;
    }
    assert.deepEqual(seen, kept);
    const [oldest = 0] = kept;
    // All at once, up to a line; a follower is not kept waiting.
    const rest = await readAll(log, { after: { ts: 0 }, before: { seq: 290 }, follow: true });
    assert.deepEqual([rest[0]?.seq, rest.at(-1)?.seq], [oldest, 289]);
    assert.deepEqual(await texts(log, { tail: 0, before: { seq: 290 } }), []);
    assert.deepEqual(await texts(log, { tail: 5, before: { seq: 1 } }), []);
    await log.end();
  });

  test('timestamps never decrease', async () => {
    const log = await SegmentedLog.open(folder());
    await log.append([record('late', 50), record('early', 40)]);
    await log.end();
    const again = await SegmentedLog.open(log.folder);
    await again.append([record('earlier', 30)]);
    assert.deepEqual(
      (await readAll(again)).map(({ ts }) => ts),
      [50, 50, 50],
    );
    await again.end();
  });

  test('continues after a crash without the incomplete batch', async () => {
    const first = await SegmentedLog.open(folder());
    await first.append([record('one')], '17');
    await first.append([record('two')]);
    const [name] = await readdir(first.folder);
    await appendFile(join(first.folder, name as string), '1000 c three\n1000 c fo');
    const second = await SegmentedLog.open(first.folder);
    assert.equal(second.mark, '17');
    await second.append([record('three')], '23');
    assert.deepEqual(
      (await readAll(second)).map(({ seq, line }) => [seq, line]),
      [
        [1, 'one'],
        [2, 'two'],
        [3, 'three'],
      ],
    );
    await Promise.all([first.end(), second.end()]);
    assert.deepEqual(await texts(await SegmentedLog.openReadOnly(first.folder)), ['one', 'two', 'three']);
  });

  test('keeps the newest lines and reports how many were dropped', async () => {
    const log = await SegmentedLog.open(folder(), 8 * 200);
    for (let number = 1; number <= 500; number += 1) await log.append([record(`line ${number}`)]);
    const lines = await readAll(log);
    const [note, first] = lines as [LogLine, LogLine];
    assert.equal(note.source, 'system');
    assert.equal(note.line, `${first.seq - 1} lines were dropped here: the log keeps the newest lines only`);
    assert.equal(note.seq, first.seq - 1);
    assert.equal(lines.at(-1)?.line, 'line 500');
    assert.equal(lines.length, 500 - first.seq + 2);
    assert.ok(lines.length > 20 && lines.length < 100, `${lines.length} lines`);
    assert.deepEqual(await texts(log, { tail: 1 }), ['line 500']);
    assert.equal((await readAll(log, { source: 'container' }))[0]?.seq, first.seq);
    await log.end();
  });

  test('a follower reads every line once, across segments, until the end', async () => {
    const log = await SegmentedLog.open(folder(), 8 * 400);
    const following = Array.fromAsync(log.lines({ follow: true }));
    for (let number = 1; number <= 60; number += 1) await log.append([record(`line ${number}`)]);
    await log.end();
    assert.deepEqual(
      (await following).map(({ seq }) => seq),
      Array.from({ length: 60 }, (_, index) => index + 1),
    );
  });

  test('a follower stops on its signal', async () => {
    const log = await SegmentedLog.open(folder());
    await log.append([record('one')]);
    const abort = new AbortController();
    const lines: string[] = [];
    for await (const { line } of log.lines({ follow: true }, abort.signal)) {
      lines.push(line);
      setImmediate(() => abort.abort());
    }
    assert.deepEqual(lines, ['one']);
    await log.end();
  });

  test('an unknown log is empty', async () => {
    assert.deepEqual(await texts(await SegmentedLog.openReadOnly(folder()), { follow: true }), []);
  });

  test('all lines are read back, however they are batched and reopened', async () => {
    const batch = fc.array(
      fc.string({ unit: 'binary', maxLength: 40 }).map((line) => line.replaceAll('\n', '')),
      { maxLength: 5 },
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ batch, reopen: fc.boolean() }), { maxLength: 12 }),
        fc.nat(30),
        async (steps, tail) => {
          let log = await SegmentedLog.open(folder());
          for (const [index, step] of steps.entries()) {
            await log.append(
              step.batch.map((line) => record(line)),
              String(index),
            );
            if (!step.reopen) continue;
            await log.end();
            log = await SegmentedLog.open(log.folder);
            assert.equal(log.mark, String(index));
          }
          const all = steps.flatMap((step) => step.batch);
          assert.deepEqual(await texts(log), all);
          assert.deepEqual(await texts(log, { tail }), tail === 0 ? [] : all.slice(-tail));
          await log.end();
        },
      ),
      { numRuns: 50 },
    );
  });
});
