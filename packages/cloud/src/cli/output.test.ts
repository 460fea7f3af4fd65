import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Output, formatValue, escapeControlCharacters } from './output.ts';

function written(isTTY: boolean, json: boolean, write: (output: Output) => void): string {
  let text = '';
  write(new Output({ isTTY, write: (part) => (text += part) }, json));
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

test('other outputs get only JSON', () => {
  assert.equal(
    written(false, false, (output) => output.printTable({ rows }, rows, columns, 'nothing')),
    `${JSON.stringify({ rows })}\n`,
  );
  assert.equal(
    written(false, false, (output) => output.printRecord({ id: 'a' }, 'A note.')),
    '{"id":"a"}\n',
  );
  assert.equal(
    written(true, true, (output) => output.printRecord({ id: 'a' }, 'A note.')),
    '{\n  "id": "a"\n}\n',
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
