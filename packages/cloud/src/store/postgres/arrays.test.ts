import assert from 'node:assert/strict';
import { test } from 'node:test';
import { columnsOf, unnest } from './arrays.ts';

test('rows become one array for each column', () => {
  assert.deepEqual(columnsOf([['a', 1], [null, 2]], 2), ['{"a",null}', '{1,2}']);
  assert.deepEqual(columnsOf([], 2), ['{}', '{}']);
});

test('whatever a text holds stays one value', () => {
  assert.deepEqual(columnsOf([['say "no", \\ or NULL'], ['null'], [''], ['{1,2}\n']], 1), ['{"say \\"no\\", \\\\ or NULL","null","","{1,2}\n"}']);
});

test('arrays are rows again, with the types of their columns', () => {
  assert.equal(unnest(['seq', 'lease'], 3, 'held'), 'unnest($3::bigint[], $4::text[]) as held (seq, lease)');
});
