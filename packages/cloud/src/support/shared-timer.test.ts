import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, mock, test } from 'node:test';
import { callAfter } from './shared-timer.ts';

describe('timers', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
  afterEach(() => mock.timers.reset());

  const called: string[] = [];
  const call = (name: string) => (): void => void called.push(name);
  beforeEach(() => void called.splice(0));

  test('with a short wait fire on time', () => {
    callAfter(300, call('short'));
    mock.timers.tick(299);
    assert.deepEqual(called, []);
    mock.timers.tick(1);
    assert.deepEqual(called, ['short']);
  });

  test('with a long wait fire together, never early and at most half a second late', () => {
    callAfter(20_000, call('a'));
    callAfter(20_000, call('b'));
    mock.timers.tick(19_999);
    assert.deepEqual(called, []);
    mock.timers.tick(502);
    assert.deepEqual(called, ['a', 'b']);
  });

  test('keep no process alive once all are cancelled', () => {
    const keptBy = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
    mock.timers.reset();
    const before = keptBy();
    const cancel = [callAfter(60_000, call('a')), callAfter(60_000, call('b'))];
    assert.ok(keptBy() > before);
    for (const one of cancel) one();
    assert.equal(keptBy(), before);
  });

  test('can be cancelled, also by one that fires at the same time', () => {
    const cancel = [callAfter(300, call('short')), callAfter(20_000, call('long'))];
    for (const one of cancel) one();
    let last = (): void => undefined;
    callAfter(20_000, () => last());
    last = callAfter(20_000, call('last'));
    mock.timers.tick(30_000);
    assert.deepEqual(called, []);
  });
});
