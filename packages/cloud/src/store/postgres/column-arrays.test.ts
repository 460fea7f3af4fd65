import assert from 'node:assert/strict';
import { test } from 'node:test';
import { columnArrays, unnest } from './column-arrays.ts';

test('rows become one array for each column', () => {
  assert.deepEqual(
    columnArrays(
      [
        { lease: 'a', seq: 1 },
        { lease: null, seq: 2 },
      ],
      ['lease', 'seq'],
    ),
    { lease: '{"a",null}', seq: '{1,2}' },
  );
  assert.deepEqual(columnArrays([], ['lease', 'seq']), { lease: '{}', seq: '{}' });
});

test('whatever a text holds stays one value', () => {
  assert.deepEqual(
    columnArrays(
      ['say "no", \\ or NULL', 'null', '', '{1,2}\n'].map((lease) => ({ lease })),
      ['lease'],
    ),
    { lease: '{"say \\"no\\", \\\\ or NULL","null","","{1,2}\n"}' },
  );
});

test('JSON is sent unchanged, and null as an empty text', () => {
  assert.deepEqual(
    columnArrays(
      [
        { seq: 1, output: '{"say":"no"}' },
        { seq: 2, output: null },
        { seq: 3, output: '"\\u001d"' },
      ],
      ['seq', 'output'],
    ),
    { seq: '{1,2,3}', output: '{"say":"no"}\u001d\u001d"\\u001d"' },
  );
  assert.equal(
    unnest(['seq', 'output']),
    "unnest(:seq::bigint[], string_to_array(:output::text, chr(29), '')) as given (seq, output)",
  );
});

test('arrays are rows again, with the types of their columns', () => {
  assert.equal(unnest(['seq', 'lease']), 'unnest(:seq::bigint[], :lease::text[]) as given (seq, lease)');
});
