import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { memberText, membersOf, withMember, replaceNaNWithNull } from './json-text.ts';

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
