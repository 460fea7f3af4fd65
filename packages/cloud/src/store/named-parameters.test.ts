import assert from 'node:assert/strict';
import { test } from 'node:test';
import { numberedValues, numberParameters } from './named-parameters.ts';

test('names become numbers in the order in which they appear, each once', () => {
  assert.deepEqual(
    numberParameters('update jobs set due_at = :due_at where seq = :seq and due_at < :due_at', '?'),
    {
      text: 'update jobs set due_at = ?1 where seq = ?2 and due_at < ?1',
      names: ['due_at', 'seq'],
    },
  );
});

test('a cast of PostgreSQL is no parameter', () => {
  assert.deepEqual(numberParameters('select :seqs::bigint[], now()::text', '$'), {
    text: 'select $1::bigint[], now()::text',
    names: ['seqs'],
  });
});

test('values are ordered by their names, and null is a value', () => {
  assert.deepEqual(numberedValues(['b', 'a'], { a: 1, b: null, more: 2 }), [null, 1]);
  assert.throws(() => numberedValues(['a'], {}), /needs a value for :a/);
});
