import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ManualClock } from '../support/clock.ts';
import { StopList } from './stop-list.ts';

const SECOND = 1_000;

function fixture(): { clock: ManualClock; stops: StopList } {
  const clock = new ManualClock();
  return { clock, stops: new StopList(clock) };
}

describe('a worker', () => {
  test('is told at once what to stop, and again every few seconds', () => {
    const { clock, stops } = fixture();
    assert.deepEqual([stops.due('e', 'w'), stops.nextIn('e', 'w')], [[], Infinity]);
    stops.add('e', 'w', 'j1');
    assert.equal(stops.nextIn('e', 'w'), 0);
    assert.deepEqual(stops.due('e', 'w'), ['j1']);
    assert.deepEqual([stops.due('e', 'w'), stops.nextIn('e', 'w')], [[], 3 * SECOND]);
    clock.advance(SECOND);
    stops.add('e', 'w', 'j1');
    stops.add('e', 'w', 'j2');
    assert.deepEqual(stops.due('e', 'w'), ['j2']);
    clock.advance(2 * SECOND);
    assert.deepEqual(stops.due('e', 'w'), ['j1']);
  });

  test('is not told what others have to stop', () => {
    const { stops } = fixture();
    stops.add('e', 'w', 'j1');
    assert.deepEqual([stops.due('e', 'other'), stops.due('other', 'w')], [[], []]);
  });

  test('is not told again once it has posted a result, lists the job no longer, or has it anew', () => {
    const { clock, stops } = fixture();
    for (const id of ['posted', 'listed', 'unlisted']) stops.add('e', 'w', id);
    stops.due('e', 'w');
    stops.settle('e', 'w', 'posted');
    stops.listed('e', 'w', ['listed', 'another']);
    clock.advance(3 * SECOND);
    assert.deepEqual(stops.due('e', 'w'), ['listed']);
  });

  test('is told even if it lists nothing yet: it was not told before', () => {
    const { stops } = fixture();
    stops.add('e', 'w', 'j1');
    stops.listed('e', 'w', []);
    assert.deepEqual(stops.due('e', 'w'), ['j1']);
  });

  test('is told no more after a minute', () => {
    const { clock, stops } = fixture();
    stops.add('e', 'w', 'j1');
    clock.advance(60 * SECOND);
    assert.deepEqual(stops.due('e', 'w'), ['j1']);
    clock.advance(3 * SECOND);
    assert.deepEqual(stops.due('e', 'w'), []);
    assert.equal(stops.size, 0);
  });

  test('that never asks leaves nothing behind', () => {
    const { clock, stops } = fixture();
    for (let time = 0; time < 1_000; time += 1) {
      stops.add('e', `w${time}`, 'j');
      clock.advance(SECOND);
    }
    assert.ok(stops.size <= 125, `${stops.size} workers are kept`);
  });
});
