import assert from 'node:assert/strict';
import { test } from 'node:test';
import { batchLookups } from './lookup-batches.ts';

interface Query {
  keys: readonly string[];
  answer(found: Record<string, number>): void;
  fail(error: Error): void;
}

/** Each query is answered by the test. */
function lookups(): { find: (key: string) => Promise<number | undefined>; queries: Query[] } {
  const queries: Query[] = [];
  const find = batchLookups<number>(
    (keys) =>
      new Promise((resolve, reject) =>
        queries.push({ keys, answer: (found) => resolve(new Map(Object.entries(found))), fail: reject }),
      ),
  );
  return { find, queries };
}

test('what is asked for while two queries are on their way goes together with the next one', async () => {
  const { find, queries } = lookups();
  const found = ['a', 'b', 'c', 'd', 'c'].map(find);
  assert.deepEqual(
    queries.map(({ keys }) => keys),
    [['a'], ['b']],
  );
  queries[1]?.answer({ b: 2 });
  assert.equal(await found[1], 2);
  assert.deepEqual(queries[2]?.keys, ['c', 'd']);
  queries[2]?.answer({ c: 3 });
  queries[0]?.answer({ a: 1 });
  assert.deepEqual(await Promise.all(found), [1, 2, 3, undefined, 3]);
});

test('a query that hangs holds up nobody else', async () => {
  const { find, queries } = lookups();
  void find('hangs');
  for (const [index, key] of ['a', 'b'].entries()) {
    const found = find(key);
    queries[index + 1]?.answer({ [key]: index });
    assert.equal(await found, index);
  }
});

test('a failure is told to those who asked, and the next query goes on', async () => {
  const { find, queries } = lookups();
  const found = ['a', 'b', 'c'].map(find);
  queries[0]?.fail(new Error('away'));
  await assert.rejects(found[0] ?? Promise.resolve(), /away/);
  queries[2]?.answer({ c: 3 });
  queries[1]?.answer({ b: 2 });
  assert.deepEqual(await Promise.all(found.slice(1)), [2, 3]);
});

test('a query has at most 500 keys', async () => {
  const { find, queries } = lookups();
  const found = Array.from({ length: 1002 }, (_, index) => find(`${index}`));
  for (let index = 0; index < 4; index += 1) {
    const query = queries[index];
    query?.answer(Object.fromEntries(query.keys.map((key) => [key, Number(key)])));
    await new Promise(setImmediate);
  }
  assert.deepEqual(
    queries.map(({ keys }) => keys.length),
    [1, 1, 500, 500],
  );
  assert.deepEqual((await Promise.all(found)).at(-1), 1001);
});
