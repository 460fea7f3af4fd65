import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { startsAtAnchor, LogCursor } from './log-cursor.ts';
import type { SourceLine } from './source-line.ts';

const START = Date.UTC(2026, 0, 1);

function lineAt(ts: number, index: number): SourceLine {
  return { ts, stamp: `${ts}.${index}`, line: Buffer.from(String(index)) };
}

/**
 * Daemons differ: one drops every line before the time, another everything before the first line since the
 * time.
 */
const DAEMONS = {
  filters: (lines: readonly SourceLine[], since: number) => lines.filter(({ ts }) => ts >= since * 1000),
  skips: (lines: readonly SourceLine[], since: number) =>
    lines.slice(lines.findIndex(({ ts }) => ts >= since * 1000)),
};

/** Time passes before each line, and lines may be slightly out of order. */
const log = fc
  .array(fc.tuple(fc.oneof(fc.constant(0), fc.nat(300), fc.nat(5000)), fc.nat(400)), {
    minLength: 1,
    maxLength: 60,
  })
  .map((steps) => {
    let now = START;
    return steps.map(([passed, early], index) => lineAt((now += passed) - early, index));
  });

for (const [name, since] of Object.entries(DAEMONS)) {
  test(`every line is logged once, whenever the writer restarts (a daemon that ${name})`, () => {
    fc.assert(
      fc.property(log, fc.array(fc.nat(60), { maxLength: 6 }), (lines, stops) => {
        const written: string[] = [];
        let mark = '';
        // At each stop a part of the lines exists; the writer logs a part of them and stops.
        for (const stop of [...stops.sort((a, b) => a - b), lines.length]) {
          const available = lines.slice(0, stop + 5);
          const cursor = new LogCursor('c', mark);
          const answer = since(available, cursor.anchor.second);
          assert.ok(answer[0] === undefined || startsAtAnchor(cursor.anchor, answer[0]));
          const first = cursor.anchor.index;
          answer.forEach((line, position) => {
            const index = first + position;
            if (index >= stop && stop !== lines.length) return;
            cursor.observe(index, line);
            if (index < cursor.written) return;
            written.push(line.line.toString());
            cursor.written += 1;
            mark = cursor.mark(cursor.written);
          });
        }
        assert.deepEqual(
          written,
          lines.map(({ line }) => line.toString()),
        );
      }),
      { numRuns: 500 },
    );
  });
}

test('the anchor follows the lines, so little is read twice', () => {
  const cursor = new LogCursor('c', '');
  for (let index = 0; index < 1000; index += 1) cursor.observe(index, lineAt(START + index * 100, index));
  cursor.written = 1000;
  const later = new LogCursor('c', cursor.mark(1000));
  assert.ok(later.anchor.second * 1000 >= START + 1000 * 100 - 4000);
  assert.equal(later.anchor.index, (later.anchor.second * 1000 - START) / 100);
});

test('the mark of another container is ignored, and dropped lines are detected', () => {
  const cursor = new LogCursor('c', '');
  for (let index = 0; index < 100; index += 1) cursor.observe(index, lineAt(START + index * 100, index));
  const mark = cursor.mark(100, true);
  assert.deepEqual([new LogCursor('d', mark).anchor.second, new LogCursor('d', mark).complete], [0, false]);
  const same = new LogCursor('c', mark);
  assert.equal(same.complete, true);
  assert.equal(startsAtAnchor(same.anchor, lineAt(START + 60_000, 600)), false);
  same.skipLostLines();
  assert.deepEqual(
    [same.anchor.index, same.written, startsAtAnchor(same.anchor, lineAt(START + 60_000, 600))],
    [100, 100, true],
  );
});

test('a read that started before the cursor moved is compared with its own anchor', () => {
  const cursor = new LogCursor('c', '');
  for (let index = 0; index < 50; index += 1) cursor.observe(index, lineAt(START + index * 100, index));
  const { anchor } = cursor;
  for (let index = 50; index < 200; index += 1) cursor.observe(index, lineAt(START + index * 100, index));
  assert.ok(cursor.anchor.index > anchor.index);
  assert.ok(startsAtAnchor(anchor, lineAt(START + anchor.index * 100, anchor.index)));
  assert.ok(!startsAtAnchor(cursor.anchor, lineAt(START + anchor.index * 100, anchor.index)));
});
