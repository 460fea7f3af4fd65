import { deepEqual, equal } from 'node:assert/strict';
import { test } from 'node:test';
import { ChurnMap } from './churn-map.ts';

test('a churn map behaves like a map, also when it becomes empty', () => {
  const map = new ChurnMap<string, number>();
  for (let round = 0; round < 3; round += 1) {
    map.set('one', 1);
    map.delete('another');
    map.set('two', 2);
    deepEqual(
      [...map],
      [
        ['one', 1],
        ['two', 2],
      ],
    );
    map.delete('one');
    equal(map.has('one'), false);
    deepEqual([...map.keys()], ['two']);
    map.delete('another');
    equal(map.get('two'), 2);
    map.delete('two');
    equal(map.size, 0);
    map.delete('two');
    map.set('three', 3);
    map.clear();
    deepEqual([...map.values()], []);
  }
});

test('entries may be deleted during iteration', () => {
  const map = new ChurnMap<number, string>();
  for (let key = 1; key <= 3; key += 1) map.set(key, 'here');
  const met: number[] = [];
  for (const [key] of map) {
    met.push(key);
    map.delete(key);
  }
  deepEqual(met, [1, 2, 3]);
  equal(map.size, 0);
});
