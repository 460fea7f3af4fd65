import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { checkProperty } from '../../../../testing/src/property-testing.ts';
import { BerthError } from '../../support/errors.ts';
import { formatArgs, parseArgs, splitShellWords } from './container-command.ts';

const anyText = fc.string({ unit: 'grapheme' });
/** The characters that have a meaning to a shell, more often than chance would have them. */
const shellText = fc.string({
  unit: fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom(...`'"\\ \t\n{}$;|&*?#~!<>()\`,=`) },
    fc.string({ minLength: 1, maxLength: 1, unit: 'grapheme' }),
  ),
});
const words = fc.array(fc.oneof(anyText, shellText), { maxLength: 6 });

describe('a command', () => {
  test('survives being written as text', async () => {
    await checkProperty(
      fc.property(words, words, (entrypoint, cmd) =>
        assert.deepEqual(parseArgs(formatArgs({ entrypoint, cmd })), { entrypoint, cmd }),
      ),
      500,
    );
  });

  test('that was read from any text reads the same after writing', async () => {
    await checkProperty(
      fc.property(fc.oneof(shellText, anyText, fc.json()), (text) => {
        const command = readable(text);
        if (command !== undefined) assert.deepEqual(parseArgs(formatArgs(command)), command);
      }),
      500,
    );
  });

  test('is split as a shell would, and nothing is expanded', () => {
    const cases: [string, string[]][] = [
      ['', []],
      ['  \t ', []],
      ['python -u main.py', ['python', '-u', 'main.py']],
      ['sh -c "echo hello; sleep 1"', ['sh', '-c', 'echo hello; sleep 1']],
      ["'it'\\''s' 'two words'", ["it's", 'two words']],
      [`a'b'"c"d`, ['abcd']],
      [`''`, ['']],
      [`"" x`, ['', 'x']],
      ['two\\ words', ['two words']],
      ['"a\\"b\\\\c\\d"', ['a"b\\c\\d']],
      [`'a\\b'`, ['a\\b']],
      ['echo $HOME *', ['echo', '$HOME', '*']],
      ['line\nbreak', ['line', 'break']],
    ];
    for (const [text, expected] of cases) assert.deepEqual(splitShellWords(text), expected, text);
  });

  test('may be given as lists in JSON; invalid JSON is shell text', () => {
    assert.deepEqual(parseArgs('{"entrypoint":["sh","-c"],"cmd":["a b"]}'), {
      entrypoint: ['sh', '-c'],
      cmd: ['a b'],
    });
    assert.deepEqual(parseArgs('  {"cmd":["x"]}\n'), { entrypoint: [], cmd: ['x'] });
    assert.deepEqual(parseArgs('{}'), { entrypoint: [], cmd: [] });
    for (const text of ['{"cmd":"x"}', '{"cmd":[1]}', '{"other":[]}', '{a'])
      assert.deepEqual(parseArgs(text).entrypoint, [], text);
    assert.deepEqual(parseArgs('{"cmd":[1]}').cmd, ['{cmd:[1]}']);
  });

  test('with an open quote is refused, and the quote is named', () => {
    for (const [text, mark] of [
      ["echo 'a", "'"],
      ['echo "a', '"'],
      ['"a\\"', '"'],
    ] as const) {
      assert.throws(
        () => parseArgs(text),
        (error) =>
          error instanceof BerthError && error.code === 'rule' && error.message.includes(`quote ${mark} `),
        text,
      );
    }
  });
});

function readable(text: string): ReturnType<typeof parseArgs> | undefined {
  try {
    return parseArgs(text);
  } catch (error) {
    assert.ok(error instanceof BerthError && error.code === 'rule', String(error));
    return undefined;
  }
}
