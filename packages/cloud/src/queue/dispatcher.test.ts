import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Job, TakenJob, TakeRequest } from '../domain/job-records.ts';
import { systemClock } from '../support/clock.ts';
import { createLog } from '../support/log.ts';
import { Dispatcher } from './dispatcher.ts';

/** Queued jobs, and the takes that were made. */
function handOutOf(
  waiting: { jobs: number },
  hasWaiting?: () => Promise<boolean>,
): {
  dispatcher: Dispatcher;
  asked: number[];
  wait: (workerId?: string, signal?: AbortSignal) => Promise<number>;
} {
  const asked: number[] = [];
  const dispatcher = new Dispatcher({
    store: {
      take: (_endpointId: string, terms: TakeRequest) => {
        const claims = terms.claims();
        asked.push(claims.length);
        const taken = claims
          .slice(0, waiting.jobs)
          .map(({ lease }): TakenJob => ({ job: { lease } as Job, request: '' }));
        waiting.jobs -= taken.length;
        return Promise.resolve(taken);
      },
      listRunning: () => Promise.resolve([]),
      ...(hasWaiting !== undefined && { hasWaiting }),
    },
    clock: systemClock,
    log: createLog({ level: 'silent', format: 'json' }),
    onTaken: () => undefined,
    onDispatched: () => undefined,
    returnTaken: () => Promise.resolve(),
  });
  const wait = async (workerId = 'w', signal = new AbortController().signal): Promise<number> =>
    (await dispatcher.waitForJobs('e', workerId, 400, 10_000, signal)).length;
  return { dispatcher, asked, wait };
}

test('a take asks for a few jobs, for more while there are more, and for a few again', async () => {
  const waiting = { jobs: 1_000 };
  const { asked, wait } = handOutOf(waiting);
  assert.deepEqual([await wait(), await wait(), await wait(), await wait()], [4, 32, 256, 400]);
  assert.equal(await wait(), 308);
  waiting.jobs = 1;
  assert.equal(await wait(), 1);
  waiting.jobs = 1;
  assert.equal(await wait(), 1);
  assert.deepEqual(asked, [4, 32, 256, 400, 400, 400, 4]);
});

test('many long polls on an empty queue share its checks; a wake-up serves them immediately', async () => {
  const waiting = { jobs: 0 };
  const { dispatcher, asked, wait } = handOutOf(waiting);
  const leaving = new AbortController();
  const first = wait('w0', leaving.signal);
  await new Promise((resolve) => setImmediate(resolve));
  const others = Array.from({ length: 100 }, (_, index) => wait(`w${index + 1}`, leaving.signal));
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(asked.length, 1);
  waiting.jobs = 1;
  dispatcher.wake('e');
  assert.equal(await first, 1);
  // Without a wake: as when the notification of another server is lost.
  waiting.jobs = 1;
  const late = wait('late', leaving.signal);
  assert.equal(await Promise.race([...others, late]), 1);
  leaving.abort();
  await Promise.all([...others, late]);
});

test('a job that arrives during a take that misses it goes to the next long poll immediately', async () => {
  const waiting = { jobs: 0 };
  const { dispatcher, asked, wait } = handOutOf(waiting);
  const leaving = new AbortController();
  const gone = wait('gone', leaving.signal);
  // The take reads before the job is there, and its worker leaves before it has finished.
  dispatcher.wake('e');
  leaving.abort();
  waiting.jobs = 1;
  assert.equal(await gone, 0);
  await new Promise((resolve) => setImmediate(resolve));
  const before = asked.length;
  const next = wait('next');
  assert.equal(asked.length, before + 1);
  assert.equal(await next, 1);
});

test('an endpoint that was found empty is asked whether a job waits; a wake-up takes at once', async () => {
  const waiting = { jobs: 0 };
  const question = Promise.withResolvers<void>();
  const { dispatcher, asked, wait } = handOutOf(waiting, () => {
    question.resolve();
    return Promise.resolve(waiting.jobs > 0);
  });
  const polls = [wait('first')];
  await new Promise((resolve) => setImmediate(resolve));
  polls.push(wait('second'));
  await question.promise;
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(asked.length, 1, 'only the first poll takes');
  waiting.jobs = 1;
  dispatcher.wake('e');
  assert.equal(asked.length, 2, 'without a question');
  assert.equal(await Promise.race(polls), 1);
  dispatcher.close();
  await Promise.all(polls);
});

test('a job is found by asking where its wake-up was lost', async () => {
  const waiting = { jobs: 0 };
  const { dispatcher, asked, wait } = handOutOf(waiting, () => Promise.resolve(waiting.jobs > 0));
  const polls = [wait('first')];
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(asked.length, 1);
  waiting.jobs = 1;
  polls.push(wait('second'));
  assert.equal(await Promise.race(polls), 1);
  dispatcher.close();
  await Promise.all(polls);
});
