import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { ManualClock } from '../../../support/clock.ts';
import { BerthError } from '../../../support/errors.ts';
import { EnvironmentBuilds } from './environment-builds.ts';

const signal = new AbortController().signal;
const silent = { onLine: () => undefined, signal };

describe('builds of environments', () => {
  let clock: ManualClock;
  let builds: EnvironmentBuilds<string>;

  beforeEach(() => {
    clock = new ManualClock();
    builds = new EnvironmentBuilds(clock);
  });

  test('of the same name happen once, and all who wait get the lines and the result', async () => {
    const built = Promise.withResolvers<string>();
    const begun = Promise.withResolvers<(line: string) => void>();
    let runs = 0;
    const build = (onLine: (line: string) => void): Promise<string> => {
      runs += 1;
      begun.resolve(onLine);
      return built.promise;
    };
    const lines: string[][] = [[], []];
    const waiters = lines.map((seen) => ({ onLine: (line: string) => void seen.push(line), signal }));
    const first = builds.join('a', build, waiters[0] as (typeof waiters)[0]);
    const report = await begun.promise;
    report('early');
    const second = builds.join('a', build, waiters[1] as (typeof waiters)[0]);
    report('late');
    built.resolve('done');
    assert.deepEqual(await Promise.all([first, second]), ['done', 'done']);
    assert.deepEqual(
      [runs, lines],
      [
        1,
        [
          ['early', 'late'],
          ['early', 'late'],
        ],
      ],
    );
  });

  test('go on when the request that waited has ended', async () => {
    const built = Promise.withResolvers<string>();
    const leave = new AbortController();
    const reason = new BerthError('state', 'ended');
    const waiting = builds.join('a', () => built.promise, { onLine: () => undefined, signal: leave.signal });
    leave.abort(reason);
    await assert.rejects(waiting, reason);
    const next = builds.join('a', () => assert.fail('it was begun twice'), silent);
    built.resolve('done');
    assert.equal(await next, 'done');
  });

  test('that fail are tried again after a time that grows, or when asked for', async () => {
    let runs = 0;
    const fail = async (): Promise<string> => {
      runs += 1;
      throw new Error('no such package');
    };
    const pauses = [30, 60, 120, 240, 480, 600, 600];
    for (const [index, seconds] of pauses.entries()) {
      const expected = new RegExp(`could not be built: no such package \\(tried again after ${seconds} s`);
      await assert.rejects(builds.join('a', fail, silent), expected);
      clock.advance(seconds * 1000 - 1);
      await assert.rejects(builds.join('a', fail, silent), expected);
      assert.equal(runs, index + 1);
      clock.advance(1);
    }
    await assert.rejects(builds.join('a', fail, silent));
    builds.forgetFailure('a');
    assert.equal(await builds.join('a', async () => 'done', silent), 'done');
  });

  test('wait for their turn, two at a time', async () => {
    const ends = ['a', 'b', 'c'].map(() => Promise.withResolvers<string>());
    const begun: number[] = [];
    const all = ends.map((end, index) =>
      builds.join(
        String(index),
        () => {
          begun.push(index);
          return end.promise;
        },
        silent,
      ),
    );
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(begun, [0, 1]);
    ends[0]?.resolve('done');
    await all[0];
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(begun, [0, 1, 2]);
    for (const end of ends) end.resolve('done');
    await Promise.all(all);
  });

  test('end when Berth does, which is no failure', async () => {
    const reason = new BerthError('unavailable', 'Berth ends');
    const building = builds.join(
      'a',
      (_, abort) =>
        new Promise((_resolve, reject) =>
          abort.addEventListener('abort', () => reject(abort.reason as Error)),
        ),
      silent,
    );
    await new Promise((resolve) => setImmediate(resolve));
    const ended = assert.rejects(building, reason);
    await builds.close(reason);
    await ended;
  });
});
