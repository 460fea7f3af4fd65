import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { checkProperty, seed } from '../../../../testing/src/property-testing.ts';
import { BerthError } from '../../support/errors.ts';
import { MAX_CHUNK_BYTES, parseJobStream, parseJobDone, parseJsonValue } from './worker-posts.ts';

const result = (
  output: string | null,
  error: string | null,
  refresh = false,
): ReturnType<typeof parseJobDone> => ({ kind: 'result', output, error, refresh });

describe('the body of job-done', () => {
  test('is a result where it names no status', () => {
    assert.deepEqual(parseJobDone('{}'), result(null, null));
    assert.deepEqual(parseJobDone('{"output": null}'), result('null', null));
    assert.deepEqual(parseJobDone('{"output":{"output":1.0}}'), result('{"output":1.0}', null));
    assert.deepEqual(parseJobDone('{"output":1.0,"other":2}'), result('1.0', null));
    assert.deepEqual(parseJobDone('{"output":1,"output":2}'), result('2', null));
    assert.deepEqual(parseJobDone('{"output":1,"\\u006futput":2}'), result('2', null));
    assert.deepEqual(
      parseJobDone('{"output": 1.0, "output": {"a": 1152921504606846976} }'),
      result('{"a": 1152921504606846976}', null),
    );
    assert.deepEqual(parseJobDone('{"error": null, "output": 2}'), result('2', null));
    assert.deepEqual(parseJobDone('{"status": "COMPLETED", "output": 2}'), result('2', null));
  });

  test('is a failure with any error but null', () => {
    for (const error of ['"text"', '{"code": 5.0}', '[]', 'false', '0', '""'])
      assert.deepEqual(parseJobDone(`{"error": ${error}, "output": 1}`), result('1', error));
  });

  test('may ask for another worker', () => {
    assert.deepEqual(parseJobDone('{"output": {"stopPod": true}}'), result('{"stopPod": true}', null));
    assert.deepEqual(parseJobDone('{"output": 1, "stopPod": true}'), result('1', null, true));
    assert.deepEqual(parseJobDone('{"error": "x", "stopPod": true}'), result(null, '"x"', true));
  });

  test('is progress if its status says so', () => {
    assert.deepEqual(parseJobDone('{"status": "IN_PROGRESS", "output": {"percent": 1.0}}'), {
      kind: 'progress',
      output: '{"percent": 1.0}',
    });
    assert.deepEqual(parseJobDone('{"status": "IN_PROGRESS"}'), { kind: 'progress', output: 'null' });
  });

  test('has null where Python wrote NaN', () => {
    assert.deepEqual(
      parseJobDone('{"output": [NaN, -Infinity, "NaN"]}'),
      result('[null, null, "NaN"]', null),
    );
    assert.equal(parseJsonValue('Infinity'), 'null');
  });

  test('may hold texts of many megabytes in which NaN stands by chance, as in base64', () => {
    for (const filler of ['x', '\\n', '\\\\', '\\"']) {
      const text = `{"image":"NaN${filler.repeat(12_000_000 / filler.length)}-Infinity"}`;
      assert.ok((parseJobDone(`{"output":${text}}`) as { output: string }).output === text);
      assert.ok((parseJobDone(`{"output":${text},"error":NaN}`) as { output: string }).output === text);
    }
    for (const broken of ['{"output":"NaN', '{"output":"NaN\\"}', '{"output":NaN,"x', '"NaN'])
      assert.throws(() => parseJobDone(broken), BerthError, broken);
  });

  test('is refused where it is no object', () => {
    for (const body of ['', '{', '[]', 'null', '1', 'output=1'])
      assert.throws(
        () => parseJobDone(body),
        (error: unknown) => error instanceof BerthError && error.code === 'malformed',
        body,
      );
    assert.throws(() => parseJsonValue('{'));
  });
});

describe('a chunk', () => {
  test('stays as it is up to the limit, with all that it holds', () => {
    const text = '{"output": {"text": ["a"]}, "metrics": {"stream_index": 1.0}}';
    assert.deepEqual(parseJobStream(text), [text]);
    const largest = JSON.stringify({ output: 'x'.repeat(MAX_CHUNK_BYTES - '{"output":""}'.length) });
    assert.deepEqual(parseJobStream(largest), [largest]);
    assert.ok(parseJobStream(largest.replace('x', 'xx')).length > 1);
  });

  test(`that is too large is cut into pieces within the limit that give it back whole (seed ${seed})`, async () => {
    const pieces = fc.array(
      fc.constantFrom('plain', '日本', '🎉', '"', '\\', '\u0000', '\u001f', '\u2028', '\ud83c', 'é'),
      { minLength: 1, maxLength: 6 },
    );
    await checkProperty(
      fc.property(pieces, fc.integer({ min: 1, max: 3 }), (parts, times) => {
        const text = parts.join('').repeat(Math.ceil((MAX_CHUNK_BYTES * times) / parts.join('').length));
        const chunks = parseJobStream(JSON.stringify({ output: text }));
        assert.ok(chunks.every((chunk) => Buffer.byteLength(chunk) <= MAX_CHUNK_BYTES));
        assert.ok(chunks.map((chunk) => (JSON.parse(chunk) as { output: string }).output).join('') === text);
      }),
      15,
    );
  });

  test('that is cut keeps its other fields unchanged, in the last piece', () => {
    const chunks = parseJobStream(
      `{"metrics": {"tokens": 1.0}, "output": "${'x'.repeat(MAX_CHUNK_BYTES)}", "more": 12345678901234567890}`,
    );
    assert.ok(
      chunks.slice(0, -1).every((chunk) => Object.keys(JSON.parse(chunk) as object).join() === 'output'),
    );
    assert.match(
      chunks.at(-1) ?? '',
      /^\{"output":"x+","metrics": \{"tokens": 1\.0\},"more": 12345678901234567890\}$/,
    );
  });

  test('that is too large beside its output is cut as a whole, as the text of its JSON, and says so', () => {
    for (const output of ['"x"', '""', 'null', '{"n": 1.0}', `"${'日'.repeat(MAX_CHUNK_BYTES)}"`]) {
      const text =
        `{"output": ${output}, "metrics": "${'m'.repeat(2 * MAX_CHUNK_BYTES)}", "more": ` +
        '12345678901234567890}';
      const chunks = parseJobStream(text);
      assert.ok(chunks.every((chunk) => Buffer.byteLength(chunk) <= MAX_CHUNK_BYTES));
      const pieces = chunks.map((chunk) => JSON.parse(chunk) as { output: string });
      assert.deepEqual(
        pieces.map(({ output: _, ...said }) => said),
        chunks.map((_, index) => ({ part: index + 1, parts: chunks.length, of: 'chunk' })),
      );
      assert.ok(pieces.map((piece) => piece.output).join('') === text);
    }
  });

  test('that is no text is cut as the text of its JSON, with the number of each part', () => {
    const output = `[${Array.from({ length: 200_000 }, (_, n) => `${n}.0`).join(',')}]`;
    const chunks = parseJobStream(`{"output":${output}}`).map(
      (chunk) => JSON.parse(chunk) as { output: string; part: number; parts: number },
    );
    assert.deepEqual(
      chunks.map(({ part }) => part),
      chunks.map((_, index) => index + 1),
    );
    assert.ok(chunks.every(({ parts }) => parts === chunks.length));
    assert.ok(chunks.map((chunk) => chunk.output).join('') === output);
  });
});
