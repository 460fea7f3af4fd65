import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BerthError } from '../support/errors.ts';
import type { InstanceHandle } from './instance.ts';
import type { SegmentedLog } from './logs/segmented-log.ts';
import { StartAttempts, type StartFunction } from './start-attempts.ts';

const HANDLE: InstanceHandle = { engine: 'docker', id: 'a', state: {} };
const LOG = {} as SegmentedLog;
const ended = new BerthError('state', 'a was ended while it started');

/** A start that runs until it is cancelled. */
const untilCancelled: StartFunction = (signal) =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as BerthError)));

describe('starts in progress', () => {
  test('are shared by all callers with the same id, until they end', async () => {
    const starts = new StartAttempts();
    const { promise, resolve } = Promise.withResolvers<InstanceHandle>();
    let begun = 0;
    const starting: StartFunction = () => {
      begun += 1;
      return promise;
    };
    const both = [starts.run('a', starting), starts.run('a', starting)];
    assert.deepEqual([begun, starts.has('a'), starts.has('b')], [1, true, false]);
    resolve(HANDLE);
    assert.deepEqual(await Promise.all(both), [HANDLE, HANDLE]);
    assert.equal(starts.has('a'), false);
    await starts.run('a', starting);
    assert.equal(begun, 2);
  });

  test('are cancelled with a reason, and the next call starts again at once', async () => {
    const starts = new StartAttempts();
    const first = assert.rejects(starts.run('a', untilCancelled), ended);
    const over = starts.cancel('a', ended);
    const second = starts.run('a', async () => HANDLE);
    await Promise.all([first, over]);
    assert.equal(await second, HANDLE);
    await starts.cancel('unknown', ended);
  });

  test('are all cancelled when Berth stops', async () => {
    const starts = new StartAttempts();
    const all = ['a', 'b'].map((id) => assert.rejects(starts.run(id, untilCancelled), ended));
    await starts.cancelAll(ended);
    await Promise.all(all);
  });

  test('provide their log once it is open, and undefined if they end without one', async () => {
    const starts = new StartAttempts();
    const logging = starts.run('a', async (_, onLogOpened) => {
      onLogOpened(LOG);
      return HANDLE;
    });
    const book = starts.book('a');
    const silent = assert.rejects(starts.run('b', untilCancelled), ended);
    const none = starts.book('b');
    await starts.cancel('b', ended);
    await Promise.all([logging, silent]);
    assert.deepEqual([await book, await none, await starts.book('unknown')], [LOG, undefined, undefined]);
  });
});
