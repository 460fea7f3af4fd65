import assert from 'node:assert/strict';
import { test } from 'node:test';
import { crashSummary } from './crash-summary.ts';

test('finds the error in the last log lines of Node and Python', () => {
  assert.equal(
    crashSummary([
      'file:///x/handler.ts:1',
      'throw new Error("gone");',
      '      ^',
      '',
      'Error: the model file is missing',
      '    at file:///x/handler.ts:1:7',
      '',
      'Node.js v24.21.0',
    ]),
    'Error: the model file is missing',
  );
  assert.equal(
    crashSummary([
      'Traceback (most recent call last):',
      '  File "h.py", line 1',
      "ModuleNotFoundError: No module named 'torch'",
    ]),
    "ModuleNotFoundError: No module named 'torch'",
  );
  assert.equal(crashSummary(['loading', 'out of memory', '']), 'out of memory');
  assert.equal(crashSummary([]), '');
});

test('reads the messages of the public SDKs from their JSON', () => {
  const sdkLine = (message: string): string => JSON.stringify({ requestId: null, message, level: 'ERROR' });
  assert.equal(
    crashSummary(['loading', sdkLine('Worker is unhealthy, exiting.')]),
    'Worker is unhealthy, exiting.',
  );
  assert.equal(
    crashSummary([
      sdkLine('Traceback:\n  File "h.py", line 1\nValueError: no weights'),
      sdkLine('Worker is unhealthy, exiting.'),
    ]),
    'ValueError: no weights',
  );
  for (const line of ['{"requestId": null, "mess', '{"requestId": 1}', '{"loss": 2}'])
    assert.equal(crashSummary([line]), line);
});
