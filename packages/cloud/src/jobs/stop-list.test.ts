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
    assert.deepEqual(stops.due('e', 'w'), []);
    stops.add('e', 'w', 'j1');
    assert.deepEqual([stops.due('e', 'w'), stops.due('e', 'w')], [['j1'], []]);
    clock.advance(SECOND);
    stops.add('e', 'w', 'j1');
    stops.add('e', 'w', 'j2');
    assert.deepEqual(stops.due('e', 'w'), ['j2']);
    clock.advance(2 * SECOND);
    assert.deepEqual(stops.due('e', 'w'), ['j1']);
  });

  test('waits until there is something to stop, or until it is enough', async () => {
    const { clock, stops } = fixture();
    const { signal } = new AbortController();
    const [first, released, all] = [stops.wait('e', 'w', 60 * SECOND, signal), stops.wait('e', 'released', 60 * SECOND, signal), stops.wait('e', 'other', 60 * SECOND, signal)];
    stops.add('e', 'w', 'j1');
    assert.deepEqual(await first, ['j1']);
    stops.release('e', 'released');
    assert.deepEqual(await released, []);
    stops.wakeAll();
    assert.deepEqual([await all, await stops.wait('e', 'other', 5, signal)], [[], []]);
    const again = stops.wait('e', 'w', 60 * SECOND, signal);
    clock.advance(3 * SECOND);
    assert.deepEqual(await again, ['j1'], 'as soon as it has to be said again');
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

  test('that was never told here, but by another server, is not stubborn', () => {
    const { clock, stops } = fixture();
    for (const worker of ['told', 'untold']) stops.add('e', worker, 'j1');
    stops.due('e', 'told');
    clock.advance(16 * SECOND);
    assert.deepEqual([stops.isStubborn('e', 'told'), stops.isStubborn('e', 'untold')], [true, false]);
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
