import assert from 'node:assert/strict';
import { test } from 'node:test';
import { levelFilter } from './log-levels.ts';

test('lines of the SDKs are shown from a level on, and all others always', () => {
  const lines = [
    'DEBUG  | 17 | Initialized heartbeat.',
    'INFO   | 17 | Started.',
    'WARN   | slow',
    'ERROR  | 17 | broken',
    '{"requestId": "17", "message": "x", "level": "DEBUG"}',
    'DEBUGGING is on',
    'what a handler prints',
  ];
  const shown = (level: 'debug' | 'info' | 'error'): number[] => {
    const shows = levelFilter(level);
    return lines.flatMap((line, index) => (shows({ ts: '', source: 'container', line }) ? [index] : []));
  };
  assert.deepEqual(shown('debug'), [0, 1, 2, 3, 4, 5, 6]);
  assert.deepEqual(shown('info'), [1, 2, 3, 5, 6]);
  assert.deepEqual(shown('error'), [3, 5, 6]);
});
