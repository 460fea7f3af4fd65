import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { checkProperty } from '../../../../testing/src/property-testing.ts';
import { completionJson, jsonArrayElements } from './openai-output.ts';
import { SseEncoder, encodeValue } from './openai-events.ts';
import { errorMessage } from './openai.errors.ts';

test('a list of one is its element, as the text that it is', () => {
  assert.equal(completionJson('[ {"a": 1.0, "b": [1, 2]} ]'), '{"a": 1.0, "b": [1, 2]}');
  assert.equal(completionJson('{"a":[1]}'), '{"a":[1]}');
  assert.equal(completionJson('[1,2]'), '[1,2]');
  assert.equal(completionJson('"[1]"'), '"[1]"');
  assert.equal(completionJson('[]'), undefined);
  assert.equal(completionJson(null), undefined);
});

test('a list is taken apart as JSON says', () =>
  checkProperty(
    fc.property(fc.array(fc.jsonValue()), fc.constantFrom(undefined, 2), (values, indent) => {
      const elements = jsonArrayElements(JSON.stringify(values, null, indent));
      assert.deepEqual(
        elements?.map((element) => JSON.parse(element) as unknown),
        JSON.parse(JSON.stringify(values)),
      );
    }),
  ));

test('text is put together as it is, anything else becomes events', () => {
  const events = new SseEncoder();
  const chunks = [
    { output: 'data: {"a"' },
    { output: ':1}\n\nda' },
    { output: 'ta: [DONE]\n\n' },
    { output: { b: 2 } },
    { output: null },
    { output: '' },
  ];
  assert.equal(
    chunks.map((chunk) => events.encode(JSON.stringify(chunk))).join(''),
    'data: {"a":1}\n\ndata: [DONE]\n\ndata: {"b":2}\n\ndata: null\n\n',
  );
  assert.equal(events.encode('{"output":{\n  "a": 1.0\r\n}}'), 'data: {   "a": 1.0 }\n\n');
  assert.equal(encodeValue('"raw"'), 'raw');
});

test('a value that was cut into chunks is one event', () => {
  const events = new SseEncoder();
  const parts = ['{"a":"', 'b', '"}'].map((output, index) =>
    JSON.stringify({ output, part: index + 1, parts: 3 }),
  );
  assert.deepEqual(
    parts.map((part) => events.encode(part)),
    ['', '', 'data: {"a":"b"}\n\n'],
  );
  assert.equal(events.encode('{"output":"x"}'), 'x');
});

test('the words of a failure are found wherever a worker puts them', () => {
  assert.equal(errorMessage('"plain"'), 'plain');
  assert.equal(
    errorMessage(
      JSON.stringify(JSON.stringify({ error_type: 'x', error_message: 'went wrong', error_traceback: 't' })),
    ),
    'went wrong',
  );
  assert.equal(errorMessage('{"message":"inside"}'), 'inside');
  assert.equal(errorMessage('{"code":5}'), '{"code":5}');
  assert.equal(
    errorMessage(JSON.stringify("{'message': 'python', 'code': 400}")),
    "{'message': 'python', 'code': 400}",
  );
  assert.equal(errorMessage(null), 'the job failed');
});
