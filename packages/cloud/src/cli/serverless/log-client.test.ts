import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatLogLine } from './log-client.ts';

const at = (line: string, source: 'container' | 'system' = 'container') => ({
  ts: '2026-01-02T03:04:05.678Z',
  source,
  line,
});

test('a line says when, and whose it is where there are several', () => {
  assert.equal(formatLogLine(at('hello')), '03:04:05.678  hello\n');
  assert.equal(formatLogLine(at('hello'), 'w1'), 'w1  03:04:05.678  hello\n');
  assert.equal(formatLogLine(at('Starting.', 'system')), '03:04:05.678  · Starting.\n');
});

test('what the worker library writes for programs is told to people in words', () => {
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

test('a line cannot play with the terminal; a tab is a tab', () => {
  assert.equal(formatLogLine(at('a\tb\u001b[2Jc')), '03:04:05.678  a\tb\\u001b[2Jc\n');
});
