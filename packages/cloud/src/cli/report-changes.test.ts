import assert from 'node:assert/strict';
import { test } from 'node:test';
import { REMINDER_MS, reportChanges } from './report-changes.ts';

test('a state is said when it changes, and again after a while', () => {
  const said: string[] = [];
  let now = 0;
  const report = reportChanges(
    (line) => said.push(line),
    () => now,
  );
  report('pulling');
  report('pulling');
  now += REMINDER_MS;
  report('pulling');
  report('pulling');
  report('starting');
  assert.deepEqual(said, ['pulling', 'still: pulling', 'starting']);
});
