import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toColumnArrays, unnest } from './column-arrays.ts';

test('rows become one array for each column', () => {
  assert.deepEqual(
    toColumnArrays(
      [
        ['a', 1],
        [null, 2],
      ],
      ['lease', 'seq'],
    ),
    ['{"a",null}', '{1,2}'],
  );
  assert.deepEqual(toColumnArrays([], ['lease', 'seq']), ['{}', '{}']);
});

test('whatever a text holds stays one value', () => {
  assert.deepEqual(toColumnArrays([['say "no", \\ or NULL'], ['null'], [''], ['{1,2}\n']], ['lease']), [
    '{"say \\"no\\", \\\\ or NULL","null","","{1,2}\n"}',
  ]);
});

test('JSON travels as it is written, and what is not there as nothing', () => {
  assert.deepEqual(
    toColumnArrays(
      [
        [1, '{"say":"no"}'],
        [2, null],
        [3, '"\\u001d"'],
      ],
      ['seq', 'output'],
    ),
    ['{1,2,3}', '{"say":"no"}\u001d\u001d"\\u001d"'],
  );
  assert.equal(
    unnest(['seq', 'output']),
    "unnest($1::bigint[], string_to_array($2::text, chr(29), '')) as given (seq, output)",
  );
});

test('arrays are rows again, with the types of their columns', () => {
  assert.equal(unnest(['seq', 'lease'], 3, 'held'), 'unnest($3::bigint[], $4::text[]) as held (seq, lease)');
});
