import assert from 'node:assert/strict';
import { test } from 'node:test';
import { REMINDER_MS, reportChanges, printProgress } from './report-changes.ts';

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

test('what takes long says what it is at, and what is short says nothing', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const said: string[] = [];
  let step = 'copying';
  const result = await printProgress(
    (line) => said.push(line),
    () => step,
    () => {
      t.mock.timers.tick(1_499);
      assert.deepEqual(said, []);
      t.mock.timers.tick(3_000);
      step = 'checking';
      t.mock.timers.tick(1_500);
      return Promise.resolve('made');
    },
  );
  t.mock.timers.tick(60_000);
  assert.deepEqual([result, said], ['made', ['copying', 'checking']]);
});
