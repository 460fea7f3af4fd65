import assert from 'node:assert/strict';
import { test } from 'node:test';
import { downloadText, filterRows, levelOf, MAX_SHOWN_CHARS, toLogRow } from './log-lines.ts';

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

test('search ignores case, and levels hide what is below', () => {
  const rows = [row('Error: Castle'), row('castle built'), row('debug castle'), row('moat')];
  assert.equal(filterRows(rows, 'CASTLE', 'debug').length, 3);
  assert.equal(filterRows(rows, 'castle', 'info').length, 2);
  assert.equal(filterRows(rows, '', 'error').length, 1);
  assert.equal(filterRows(rows, '', 'debug'), rows);
});
