import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { releaseStartMemory } from './release-start-memory.ts';

test('memory is given back once, in the first idle second', () => {
  mock.timers.enable({ apis: ['setInterval'] });
  try {
    let [used, collections] = [0.5, 0];
    const options = { collect: () => (collections += 1), utilization: () => used };
    releaseStartMemory(options);
    mock.timers.tick(3_000);
    assert.equal(collections, 0);
    used = 0.01;
    mock.timers.tick(3_000);
    assert.equal(collections, 1);

    releaseStartMemory(options)();
    mock.timers.tick(3_000);
    assert.equal(collections, 1, 'it was stopped');

    used = 0.5;
    releaseStartMemory(options);
    mock.timers.tick(60_000);
    used = 0;
    mock.timers.tick(3_000);
    assert.equal(collections, 1, 'a server that was busy for a minute keeps its memory');
  } finally {
    mock.timers.reset();
  }
});
