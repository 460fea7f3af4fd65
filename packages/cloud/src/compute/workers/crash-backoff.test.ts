import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  recordCrash,
  hasRecovered,
  exitedCleanly,
  isCrashLooping,
  nextStartAt,
  NO_CRASHES,
  describeCrashes,
} from './crash-backoff.ts';
import type { CrashHistory } from './crash-backoff.ts';

const NOW = 10_000_000;

function crashes(count: number): CrashHistory {
  let found = NO_CRASHES;
  for (let crash = 0; crash < count; crash += 1)
    found = recordCrash(found, { lastLine: 'out of memory', ran: true, now: NOW });
  return found;
}

describe('crashes of an endpoint', () => {
  test('after a first one the next worker starts at once, then with growing pauses up to a minute', () => {
    assert.deepEqual(
      [0, 1].map((count) => nextStartAt(crashes(count))),
      [0, 0],
    );
    assert.deepEqual(
      [2, 3, 4, 7, 8, 9, 500].map((count) => nextStartAt(crashes(count)) - NOW),
      [1_000, 2_000, 4_000, 32_000, 60_000, 60_000, 60_000],
    );
    assert.deepEqual(
      [0, 1, 2, 3].map((count) => isCrashLooping(crashes(count))),
      [false, false, true, true],
    );
  });

  test('are unexpected ends of a worker that failed, or that did nothing for less than a minute', () => {
    const well = (over: Partial<Parameters<typeof exitedCleanly>[0]>): boolean =>
      exitedCleanly({ exitCode: 0, readyAt: NOW, worked: false, at: NOW + 1, ...over });
    assert.equal(well({}), false);
    assert.equal(well({ at: NOW + 59_999 }), false);
    assert.equal(well({ at: NOW + 60_000 }), true);
    assert.equal(well({ worked: true }), true);
    assert.equal(well({ worked: true, readyAt: null }), false);
    for (const exitCode of [1, null]) assert.equal(well({ worked: true, at: NOW + 60_000, exitCode }), false);
  });

  test('are over when a worker has been ready for a minute since the last one', () => {
    const over = (readyAt: number, now: number): boolean =>
      hasRecovered(crashes(3), { readySince: [readyAt], isAbandoned: false, now });
    assert.equal(over(NOW + 5_000, NOW + 65_000), false);
    assert.equal(over(NOW + 5_000, NOW + 65_001), true);
    // A worker that was ready all along proves nothing about those that crashed.
    assert.equal(over(1, NOW + 60_000), false);
    assert.equal(over(1, NOW + 60_001), true);
  });

  test('are over after an hour if no job waits and no worker runs', () => {
    const over = (isAbandoned: boolean, now: number): boolean =>
      hasRecovered(crashes(3), { readySince: [], isAbandoned, now });
    assert.equal(over(true, NOW + 3_600_000), false);
    assert.equal(over(true, NOW + 3_600_001), true);
    assert.equal(over(false, NOW + 100 * 3_600_000), false);
  });

  test('are described with the last crash summary, or why the worker could not be started', () => {
    assert.equal(
      describeCrashes(crashes(3)),
      'workers end as soon as they start (3 in a row); the last one said: out of memory',
    );
    assert.match(describeCrashes({ ...crashes(1), lastLine: '' }), /said: \(nothing\)$/);
    assert.equal(
      describeCrashes({ count: 2, lastAt: NOW, lastLine: 'no such image', ran: false }),
      'no worker can be started (2 tries in a row): no such image',
    );
  });
});
