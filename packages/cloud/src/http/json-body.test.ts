import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { checkProperty } from '../../../testing/src/property-testing.ts';
import { BerthError } from '../support/errors.ts';
import { checkText, parseJsonBody } from './json-body.ts';

const bytes = (text: string): Uint8Array => Buffer.from(text);
const refused = (words: RegExp) => (error: unknown) =>
  error instanceof BerthError && error.code === 'malformed' && words.test(error.message);

describe('a JSON body', () => {
  test('that can be kept is read as it is', async () => {
    const text = fc
      .string({ unit: 'grapheme' })
      .filter((value) => !value.includes('\0') && value.isWellFormed() && value !== '__proto__');
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        text,
        fc.integer(),
        fc.boolean(),
        fc.constant(null),
        fc.array(tie('value'), { maxLength: 4 }),
        fc.dictionary(text, tie('value'), { maxKeys: 4 }),
      ),
    }));
    await checkProperty(
      fc.property(value, (made) =>
        assert.equal(JSON.stringify(parseJsonBody(bytes(JSON.stringify(made)))), JSON.stringify(made)),
      ),
    );
  });

  test('of any bytes is read or refused, without another error', async () => {
    await checkProperty(
      fc.property(fc.oneof(fc.uint8Array(), fc.json().map(bytes), fc.string().map(bytes)), (body) => {
        try {
          parseJsonBody(body);
        } catch (error) {
          assert.ok(refused(/./)(error), String(error));
        }
      }),
      500,
    );
  });

  test('that is invalid is refused with the position, never with its content', () => {
    for (const body of [
      '{"password":"hunter2"',
      '{"password":"hunter2"}}',
      '{"password":hunter2}',
      "{'password':'hunter2'}",
      'hunter2',
      '',
    ]) {
      assert.throws(
        () => parseJsonBody(bytes(body)),
        (error) => refused(/not valid JSON/)(error) && !/hunter2|hunt/.test(String(error)),
        body,
      );
    }
    assert.throws(() => parseJsonBody(Uint8Array.of(0x22, 0xff, 0x22)), refused(/not valid UTF-8/));
    assert.throws(
      () => parseJsonBody(Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from('x')])),
      refused(/not valid JSON/),
    );
  });

  test('with a NUL, half a surrogate pair or a prototype is refused, as a value, a name, or deep inside', () => {
    for (const [text, words] of [
      ['"a\\u0000b"', /NUL/],
      ['"\\ud800"', /surrogate/],
      ['"\\udc00x"', /surrogate/],
    ] as const) {
      for (const body of [text, `[${text}]`, `{"a":{"b":[1,${text}]}}`, `{${text}:1}`])
        assert.throws(() => parseJsonBody(bytes(body)), refused(words), body);
    }
    for (const body of ['{"__proto__":{"admin":true}}', '[{"a":{"__proto__":1}}]'])
      assert.throws(() => parseJsonBody(bytes(body)), refused(/__proto__/), body);
    assert.deepEqual(parseJsonBody(bytes('{"constructor":1,"emoji":"\\ud83d\\ude00"}')), {
      constructor: 1,
      emoji: '😀',
    });
  });

  test('nests 64 levels and no more, however many are sent', () => {
    const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);
    parseJsonBody(bytes(nested(64)));
    for (const levels of [65, 1000, 100_000, 1_000_000])
      assert.throws(() => parseJsonBody(bytes(nested(levels))), refused(/64 levels/), String(levels));
    assert.throws(
      () => parseJsonBody(bytes('{"a":'.repeat(100_000) + '1' + '}'.repeat(100_000))),
      refused(/64 levels/),
    );
  });
});

describe('text of a path or a query', () => {
  test('is kept to the same rules', async () => {
    await checkProperty(
      fc.property(fc.string({ unit: 'binary' }), (text) =>
        assert.doesNotThrow(() => checkText(text.replaceAll('\0', '').toWellFormed())),
      ),
    );
    for (const text of ['\0', 'a\0b', '\ud800', 'a\udfff'])
      assert.throws(() => checkText(text), refused(/./));
  });
});
