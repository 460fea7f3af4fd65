import assert from 'node:assert/strict';
import { test } from 'node:test';
import { downloadText, filterRows, firstRowAt, levelOf, MAX_SHOWN_CHARS, toLogRow } from './log-lines.ts';

const row = (line: string) => toLogRow({ ts: '2026-01-01T00:00:00.000Z', source: 'container', line });

test('colours and control characters are not shown, and are in the download', () => {
  const coloured = row('\u001b[31mred\u001b[0m \u001b]0;title\u0007bell\u0007 <b>bold</b>');
  assert.equal(coloured.text, 'red bell <b>bold</b>');
  assert.match(downloadText([coloured]), /\u001b\[31mred/);
});

test('a line of ten megabytes is cut on screen', () => {
  const long = row('x'.repeat(10_000_000));
  assert.ok(long.text.length < MAX_SHOWN_CHARS + 100);
  assert.match(long.text, /10000000 characters/);
  assert.equal(downloadText([long]).length, 10_000_000 + 26);
});

test('the level is read from the words of log libraries', () => {
  assert.equal(levelOf('ERROR: no memory'), 'error');
  assert.equal(levelOf('{"level":"WARN","message":"slow"}'), 'warn');
  assert.equal(levelOf('{"level":20,"msg":"x"}'), 'debug');
  assert.equal(levelOf('Traceback (most recent call last):'), 'error');
  assert.equal(levelOf('mirrored'), 'info');
});

test('the messages of the worker SDKs are shown as text, with the traceback of a handler', () => {
  const message = (text: string, level: string, requestId: string | null = null) =>
    row(JSON.stringify({ requestId, message: text, level }));
  const started = message('Started. error: none', 'INFO', 'job1');
  assert.deepEqual([started.text, started.level], ['job1: Started. error: none', 'info']);
  assert.match(downloadText([started]), /Z \{"requestId":"job1"/);
  const error = { error_type: 'ValueError', error_traceback: 'Traceback:\n  File "h.py"\nValueError: no\n' };
  const failed = message(JSON.stringify(error, null, 4), 'ERROR');
  assert.equal(failed.text, 'ERROR Traceback:\n  File "h.py"\nValueError: no');
  for (const line of ['{"requestId": 1', '{"requestId": null, "level": "INFO"}', '{"message": "x"}'])
    assert.equal(row(line).text, line);
});

test('search ignores case, and levels hide what is below', () => {
  const rows = [row('Error: Castle'), row('castle built'), row('debug castle'), row('moat')];
  assert.equal(filterRows(rows, 'CASTLE', 'debug').length, 3);
  assert.equal(filterRows(rows, 'castle', 'info').length, 2);
  assert.equal(filterRows(rows, '', 'error').length, 1);
  assert.equal(filterRows(rows, '', 'debug'), rows);
});

test('the log of a job begins at the first line since it started, whatever the lines say', () => {
  const at = (second: number) => Date.UTC(2026, 0, 1, 0, 0, second);
  // Two lines of the same moment, and one without fractions of a second.
  const rows = ['00:00:01.500Z', '00:00:02.000Z', '00:00:02.000Z', '00:00:04Z'].map((time) =>
    toLogRow({ ts: `2026-01-01T${time}`, source: 'container', line: 'printed without an id' }),
  );
  assert.deepEqual(
    [0, 1, 2, 3, 4, 5].map((second) => firstRowAt(rows, at(second))),
    [0, 0, 1, 3, 3, 4],
  );
  assert.equal(firstRowAt([], at(1)), 0);
});
