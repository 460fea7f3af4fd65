import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { memberText, membersOf, mergePatch, withMember, replaceNaNWithNull } from './json-text.ts';

const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);

test('the text of a member is unchanged', () => {
  const text = ' {"a" : 1.0 , "big":12345678901234567890,\n"s":"q\\"}{,","o":{"x":[1,{"y":"]"}]},"n":null}';
  assert.equal(memberText(text, 'a'), '1.0');
  assert.equal(memberText(text, 'big'), '12345678901234567890');
  assert.equal(memberText(text, 's'), '"q\\"}{,"');
  assert.equal(memberText(text, 'o'), '{"x":[1,{"y":"]"}]}');
  assert.equal(memberText(text, 'n'), 'null');
  assert.equal(memberText(text, 'missing'), undefined);
  assert.equal(memberText('{"a":1,"a":2}', 'a'), '2');
  assert.deepEqual(membersOf('{}'), []);
  assert.equal(memberText('{"\\u0061":"\\\\"}', 'a'), '"\\\\"');
});

test('a member is set once, whatever the object had before', () => {
  assert.equal(withMember('{"input":1.0}', 'id', '"x"'), '{"id":"x","input":1.0}');
  assert.equal(withMember('{"id":"evil","input":1,"id":"worse"}', 'id', '"x"'), '{"id":"x","input":1}');
  assert.equal(withMember('{"\\u0069d":"evil","input":1}', 'id', '"x"'), '{"id":"x","input":1}');
  assert.equal(withMember(' {"input":{"id":1}}', 'id', '"x"'), '{"id":"x","input":{"id":1}}');
  assert.equal(withMember('{ }', 'id', '"x"'), '{"id":"x"}');
});

test('a merge patch changes what it names, and keeps the text of the rest', () => {
  const text = '{ "big": 12345678901234567890, "a": {"x": 1.0, "y": 2}, "gone": 1, "list": [1] }';
  assert.equal(
    mergePatch(text, { a: { y: 3, z: { deep: true, no: null } }, gone: null, list: [2], new: 'n' }),
    '{"big":12345678901234567890,"a":{"x":1.0,"y":3,"z":{"deep":true}},"list":[2],"new":"n"}',
  );
  // The examples of RFC 7396 that have objects on both sides.
  const examples: [object, Record<string, unknown>, object][] = [
    [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
    [{ a: 'b' }, { a: null }, {}],
    [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
    [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
    [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
  ];
  for (const [before, patch, after] of examples)
    assert.deepEqual(JSON.parse(mergePatch(JSON.stringify(before), patch)), after);
});

test('NaN and Infinity become null outside of strings', () => {
  assert.equal(
    replaceNaNWithNull('{"a":NaN,"b":[Infinity,-Infinity],"s":"NaN \\" Infinity"}'),
    '{"a":null,"b":[null,null],"s":"NaN \\" Infinity"}',
  );
});

test(`members agree with JSON.parse (seed ${seed})`, () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.nat(4), (object, space) => {
      const text = JSON.stringify(object, null, space);
      const parsed = JSON.parse(text) as Record<string, unknown>;
      const read = Object.fromEntries(
        membersOf(text).map(({ key, valueStart, valueEnd }) => [
          key,
          JSON.parse(text.slice(valueStart, valueEnd)) as unknown,
        ]),
      );
      assert.deepEqual(read, parsed);
      assert.deepEqual(JSON.parse(withMember(text, 'id', '"new"')), { ...parsed, id: 'new' });
      assert.equal(replaceNaNWithNull(text), text);
    }),
    { seed, numRuns: 1_000 },
  );
});
