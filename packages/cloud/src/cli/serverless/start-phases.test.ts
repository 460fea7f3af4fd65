import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatStartPhases } from './start-phases.ts';

test('the phases of a start are shown by how long each took, as far as they are over', () => {
  const at = (milliseconds: number): string => new Date(Date.UTC(2026, 0, 1) + milliseconds).toISOString();
  const phases = {
    scheduledAt: at(0),
    imageReadyAt: at(12_345),
    startedAt: at(12_353),
    connectedAt: at(12_763),
    firstJobAt: at(12_763),
  };
  assert.equal(formatStartPhases(phases), 'image 12.3 s, process 8 ms, load 410 ms, first job 0 ms');
  assert.equal(
    formatStartPhases({ ...phases, connectedAt: null, firstJobAt: null }),
    'image 12.3 s, process 8 ms',
  );
  // A worker of an earlier version has no time for its image.
  assert.equal(
    formatStartPhases({ ...phases, imageReadyAt: null, firstJobAt: null }),
    'process 12.4 s, load 410 ms',
  );
});
