import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tellingLine } from './telling-line.ts';

test('finds the error among what Node and Python say when they end', () => {
  assert.equal(tellingLine(['file:///x/handler.ts:1', 'throw new Error("gone");', '      ^', '', 'Error: the model file is missing', '    at file:///x/handler.ts:1:7', '', 'Node.js v24.21.0']), 'Error: the model file is missing');
  assert.equal(tellingLine(['Traceback (most recent call last):', '  File "h.py", line 1', "ModuleNotFoundError: No module named 'torch'"]), "ModuleNotFoundError: No module named 'torch'");
  assert.equal(tellingLine(['loading', 'out of memory', '']), 'out of memory');
  assert.equal(tellingLine([]), '');
});
