import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BerthError } from '../../support/errors.ts';
import type { InstanceHandle } from '../instance.ts';
import type { SegmentedLog } from '../logs/segmented-log.ts';
import { StartAttempts, type StartFunction } from './start-attempts.ts';

const HANDLE: InstanceHandle = { engine: 'docker', id: 'a', state: {} };
const BOOK = {} as SegmentedLog;
const ended = new BerthError('state', 'a was ended while it started');

/** Starts until it is told to end. */
const untilEnded: StartFunction = (signal) =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as BerthError)));

describe('starts that are under way', () => {
  test('are one for all who wish the same, and free for the next when they have ended', async () => {
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

  test('end with the reason that is given, and the next wish begins anew at once', async () => {
    const starts = new StartAttempts();
    const first = assert.rejects(starts.run('a', untilEnded), ended);
    const over = starts.cancel('a', ended);
    const second = starts.run('a', async () => HANDLE);
    await Promise.all([first, over]);
    assert.equal(await second, HANDLE);
    await starts.cancel('unknown', ended);
  });

  test('all end when Berth does', async () => {
    const starts = new StartAttempts();
    const all = ['a', 'b'].map((id) => assert.rejects(starts.run(id, untilEnded), ended));
    await starts.cancelAll(ended);
    await Promise.all(all);
  });

  test('say where they write as soon as they do, and that they wrote nothing when they have ended', async () => {
    const starts = new StartAttempts();
    const talking = starts.run('a', async (_, hasBook) => {
      hasBook(BOOK);
      return HANDLE;
    });
    const book = starts.book('a');
    const silent = assert.rejects(starts.run('b', untilEnded), ended);
    const none = starts.book('b');
    await starts.cancel('b', ended);
    await Promise.all([talking, silent]);
    assert.deepEqual([await book, await none, await starts.book('unknown')], [BOOK, undefined, undefined]);
  });
});
