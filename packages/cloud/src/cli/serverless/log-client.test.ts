import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatLogLine } from './log-client.ts';

const at = (line: string, source: 'container' | 'system' = 'container') => ({
  ts: '2026-01-02T03:04:05.678Z',
  source,
  line,
});

test('a line has the time, and the worker if there are several', () => {
  assert.equal(formatLogLine(at('hello')), '03:04:05.678  hello\n');
  assert.equal(formatLogLine(at('hello'), 'w1'), 'w1  03:04:05.678  hello\n');
  assert.equal(formatLogLine(at('Starting.', 'system')), '03:04:05.678  · Starting.\n');
});

test('JSON lines of the worker SDK are shown as text', () => {
  assert.equal(
    formatLogLine(at('{"requestId":"j1","message":"Started.","level":"INFO"}')),
    '03:04:05.678  j1: Started.\n',
  );
  assert.equal(
    formatLogLine(at('{"requestId":null,"message":"It broke.","level":"ERROR"}')),
    '03:04:05.678  ERROR It broke.\n',
  );
  for (const line of ['{"a":1}', '{not json', '[1]', 'null'])
    assert.equal(formatLogLine(at(line)), `03:04:05.678  ${line}\n`);
});

test('a message of several lines is shown in several lines, and the traceback within one as text', () => {
  const error = { error_type: 'ValueError', error_traceback: 'Traceback:\n  File "h.py"\nValueError: no\n' };
  for (const [message, text] of [
    ['one\ntwo\u001b[2J', 'ERROR one\n                  two\\u001b[2J'],
    [
      JSON.stringify(error, null, 4),
      'ERROR Traceback:\n                    File "h.py"\n                  ValueError: no',
    ],
  ])
    assert.equal(
      formatLogLine(at(JSON.stringify({ requestId: null, message, level: 'ERROR' })), 'w1'),
      `w1  03:04:05.678  ${text}\n`,
    );
});

test('control characters in a line are escaped, except tabs', () => {
  assert.equal(formatLogLine(at('a\tb\u001b[2Jc')), '03:04:05.678  a\tb\\u001b[2Jc\n');
});
