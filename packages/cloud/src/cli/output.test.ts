import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { OutputStream } from './cli-context.ts';
import { Output, formatValue, escapeControlCharacters } from './output.ts';

function written(
  isTTY: boolean,
  json: boolean,
  write: (output: Output) => void,
  stream: Partial<OutputStream> = {},
): string {
  let text = '';
  const stdout = { isTTY, write: (part: string | Uint8Array) => (text += String(part)), ...stream };
  write(new Output(stdout, { format: json ? 'json' : 'table' }));
  return text;
}

const columns = [
  { title: 'ID', value: (row: { id: string; note: string | null }) => row.id },
  { title: 'NOTE', value: (row: { id: string; note: string | null }) => row.note },
];
const rows = [
  { id: 'a', note: 'first' },
  { id: 'longer', note: null },
];

test('a terminal gets aligned columns', () => {
  assert.equal(
    written(true, false, (output) => output.printTable({ rows }, rows, columns, 'nothing')),
    'ID      NOTE\na       first\nlonger  -\n',
  );
  assert.equal(
    written(true, false, (output) => output.printTable({ rows: [] }, [], columns, 'nothing')),
    'nothing\n',
  );
  assert.equal(
    written(true, false, (output) => output.printRecord({ id: 'a', longer: true }, 'A note.')),
    'id:     a\nlonger: yes\nA note.\n',
  );
});

test('a narrow terminal gets shorter cells, and colours where it has them', () => {
  const wide = [{ id: 'COMPLETED', note: 'a long text that does not fit' }];
  const shown = written(true, false, (output) => output.printTable({}, wide, columns, ''), {
    columns: 24,
    hasColors: () => true,
  });
  assert.equal(
    shown,
    '\u001b[1mID\u001b[0m         \u001b[1mNOTE\u001b[0m\n\u001b[32mCOMPLETED\u001b[0m  a long text …\n',
  );
});

test('a narrow terminal breaks prose between words, and leaves JSON whole', () => {
  const record = { reason: 'a worker is starting now', input: '{"text": "one two three four"}' };
  const shown = written(
    true,
    false,
    (output) => output.printRecord(record, 'It goes on by itself for long.'),
    {
      columns: 24,
    },
  );
  assert.equal(
    shown,
    'reason: a worker is\n        starting now\ninput:  {"text": "one two three four"}\n' +
      'It goes on by itself for\nlong.\n',
  );
});

test('ids or names alone, and YAML', () => {
  let text = '';
  const stdout = { write: (part: string | Uint8Array) => (text += String(part)) };
  new Output(stdout, { format: 'name' }).printTable({ rows }, rows, columns, 'nothing');
  new Output(stdout, { format: 'yaml', toYaml: () => 'a: 1\n' }).printRecord({ a: 1 });
  assert.equal(text, 'a\nlonger\na: 1\n');
});

test('a pipe gets plain tables and records, and JSON where it is asked for', () => {
  assert.equal(
    written(false, false, (output) => output.printTable({ rows }, rows, columns, 'nothing')),
    'ID      NOTE\na       first\nlonger  -\n',
  );
  assert.equal(
    written(false, true, (output) => output.printTable({ rows }, rows, columns, 'nothing')),
    `${JSON.stringify({ rows })}\n`,
  );
  assert.equal(
    written(false, false, (output) => output.printRecord({ id: 'a', longer: true }, 'A note.')),
    'id:     a\nlonger: yes\n',
  );
  assert.equal(
    written(true, true, (output) => output.printRecord({ id: 'a' }, 'A note.')),
    '{\n  "id": "a"\n}\n',
  );
});

test('times in a table are short, and in UTC as everywhere', (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: Date.parse('2026-01-02T23:00:00Z') });
  const at = [{ id: 'a', note: '2026-01-02T03:04:05.678Z' }];
  assert.equal(
    written(false, false, (output) => output.printTable({}, at, columns, '')),
    'ID  NOTE\na   2026-01-02 03:04:05\n',
  );
  const terminal = [...at, { id: 'b', note: '2026-01-01T03:04:05Z' }];
  assert.equal(
    written(true, false, (output) => output.printTable({}, terminal, columns, '')),
    'ID  NOTE\na   03:04:05\nb   2026-01-01 03:04:05\n',
  );
  assert.equal(
    written(false, false, (output) => output.printRecord({ at: at[0]?.note })),
    'at: 2026-01-02T03:04:05.678Z\n',
  );
});

test('values are formatted as words', () => {
  assert.deepEqual(
    [null, undefined, '', [], {}, false, 3, ['a', 'b'], { rest: 'READ', jobs: null }].map(formatValue),
    ['-', '-', '-', '-', '-', 'no', '3', 'a, b', 'rest=READ jobs=-'],
  );
});

test('control characters in names are escaped', () => {
  assert.equal(escapeControlCharacters('a\u001b[2Jb\r\n\u202ec'), 'a\\u001b[2Jb\\u000d\\u000a\\u202ec');
  assert.equal(escapeControlCharacters('Ünïcödé 漢字 🚢'), 'Ünïcödé 漢字 🚢');
});
