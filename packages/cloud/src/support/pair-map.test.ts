import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PairMap } from './pair-map.ts';

test('each pair has its own value, also if one key is shared', () => {
  const map = new PairMap<string, number, string>();
  map.set('a', 1, 'a1');
  map.set('a', 2, 'a2');
  map.set('b', 1, 'b1');
  map.set('a', 1, 'anew');
  assert.deepEqual(
    [map.get('a', 1), map.get('a', 2), map.get('b', 1), map.get('b', 2)],
    ['anew', 'a2', 'b1', undefined],
  );
  assert.equal(map.size, 3);
  assert.deepEqual([...map.valuesOf('a')], ['anew', 'a2']);
  assert.deepEqual([...map.values()], ['anew', 'a2', 'b1']);
});

test('deletes pairs, and ignores unknown ones', () => {
  const map = new PairMap<string, string, number>();
  map.set('a', 'x', 1);
  map.set('a', 'y', 2);
  map.set('b', 'x', 3);
  map.delete('a', 'x');
  map.delete('a', 'x');
  map.delete('c', 'x');
  assert.deepEqual([map.size, [...map.values()]], [2, [2, 3]]);
  map.deleteAll('a');
  map.deleteAll('c');
  assert.deepEqual([map.size, [...map.valuesOf('a')]], [1, []]);
  map.clear();
  assert.equal(map.size, 0);
});
