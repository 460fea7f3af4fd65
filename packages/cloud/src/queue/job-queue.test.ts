import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DATABASES } from '../../../testing/src/test-database.ts';
import { isSettled } from '../../../testing/src/wait-for.ts';
import type { Job } from '../domain/job-records.ts';
import type { JobStore } from '../store/job-store.ts';
import { queueFixtures, HOUR, POLL_MS, SECOND } from './job-queue.fixture.ts';
import type { JobOptions } from './job-submission.ts';

const MINUTE = 60 * SECOND;
/** The pause after a take that failed. */
const RETRY_MS = 250;

for (const kind of DATABASES) {
  describe(`the queue, on ${kind}`, () => {
    const bench = queueFixtures(kind);

    test('a job that no worker takes expires after its time to live', async () => {
      const on = bench();
      const [day, short] = [await on.submit(), await on.submit({ ttl: 10 * SECOND })];
      await on.advance(9_999);
      assert.equal(await on.status(short), 'IN_QUEUE');
      await on.advance(1);
      assert.equal(await on.status(short), 'gone');
      on.clock.advance(24 * HOUR - 10_001);
      await on.sweep();
      assert.equal(await on.status(day), 'IN_QUEUE');
      await on.advance(1);
      assert.equal(await on.status(day), 'gone');
    });

    test('a worker that has ended is not counted, though its heartbeat is fresh', async () => {
      const on = bench();
      const { id: endpointId } = on;
      const heartbeat = { endpointId, busy: 0, unhealthy: null, accelerated: false, seenAt: on.clock.now() };
      await on.store.saveHeartbeats(['one', 'two'].map((workerId) => ({ ...heartbeat, workerId })));
      const counted = async (): Promise<string[]> =>
        (await on.queue.workers(endpointId)).map(({ workerId }) => workerId).sort();
      assert.deepEqual(await counted(), ['one', 'two']);
      on.endedInstances.add('one');
      assert.deepEqual(await counted(), ['two']);
    });

    test('a result is kept for 30 minutes, a synchronous one for 1 to 5, or as was set', async () => {
      const on = bench();
      const sync = (wait: number, waitGiven: boolean): JobOptions => ({ sync: { wait, waitGiven } });
      const cases: [JobOptions, number][] = [
        [{}, 30 * MINUTE],
        [sync(90 * SECOND, false), MINUTE],
        [sync(SECOND, true), MINUTE],
        [sync(2 * MINUTE, true), 2 * MINUTE],
        [sync(5 * MINUTE, true), 5 * MINUTE],
        [{ retention: 7 * SECOND }, 7 * SECOND],
        [{ ttl: 20 * SECOND }, 20 * SECOND],
      ];
      for (const [terms, kept] of cases) {
        const job = await on.submit(terms);
        await on.takeOne('w');
        assert.equal(await on.finish('w', job), true);
        on.clock.advance(kept - 1);
        await on.sweep();
        assert.equal(await on.status(job), 'COMPLETED', JSON.stringify(terms));
        await on.advance(1);
        assert.equal(await on.status(job), 'gone', JSON.stringify(terms));
      }
      const own = bench({ retention: 3 * SECOND });
      const job = await own.submit(sync(5 * MINUTE, true));
      await own.takeOne('w');
      await own.finish('w', job);
      await own.advance(3 * SECOND);
      assert.equal(await own.status(job), 'gone');
    });

    test('a job may run until its execution timeout, however long its worker lives', async () => {
      const on = bench({ executionTimeout: 10 * MINUTE });
      const [limited, endless] = [await on.submit(), await on.submit({ executionTimeout: 0 })];
      await on.take('w', 2);
      const lives = (): void => on.queue.heartbeats.recordRunningJobs(on.id, 'w', [limited.id, endless.id]);
      await on.advance(10 * MINUTE - 1, lives, 5 * SECOND);
      assert.equal(await on.status(limited), 'IN_PROGRESS');
      await on.advance(1, lives);
      assert.equal(await on.status(limited), 'TIMED_OUT');
      assert.deepEqual(on.queue.cancellations.due(on.id, 'w'), [limited.id]);
      assert.ok(on.published.some((wakeup) => wakeup.kind === 'stop' && wakeup.jobId === limited.id));
      await on.advance(
        2 * HOUR,
        () => on.queue.heartbeats.recordRunningJobs(on.id, 'w', [endless.id]),
        20 * SECOND,
      );
      assert.equal(await on.status(endless), 'IN_PROGRESS');
    });

    test('a manual retry restarts the time to live', async () => {
      const on = bench();
      const job = await on.submit({ ttl: HOUR, retention: HOUR });
      await on.advance(50 * MINUTE, undefined, 10 * MINUTE);
      await on.takeOne('w');
      await on.queue.finish(on.id, job.seq, { workerId: 'w' }, { output: null, error: '"no"' });
      assert.equal((await on.queue.retry(on.id, job.seq))?.after.status, 'IN_QUEUE');
      await on.advance(59 * MINUTE, undefined, 10 * MINUTE);
      assert.equal(await on.status(job), 'IN_QUEUE');
      await on.advance(MINUTE);
      assert.equal(await on.status(job), 'gone');
    });

    test('jobs that did not reach their worker are returned as if never taken', async () => {
      const on = bench();
      const job = await on.submit();
      const taken = await on.take('w');
      await on.queue.returnTaken(on.id, taken);
      assert.deepEqual(
        [(await on.job(job))?.status, (await on.job(job))?.attempt, (await on.job(job))?.retries],
        ['IN_QUEUE', 0, 0],
      );
      assert.equal((await on.takeOne('w2')).seq, job.seq);
      await on.queue.returnTaken(on.id, taken);
      assert.equal((await on.job(job))?.workerId, 'w2', 'an old hold takes nothing away from a new one');
    });

    test('waiting workers get one job each before any gets two, and no more than they asked for', async () => {
      const on = bench();
      const polls = [on.take('a', 3), on.take('b', 3), on.take('c', 1)];
      await Promise.all(Array.from({ length: 4 }, () => on.submit()));
      const counts = (await Promise.all(polls)).map(({ length }) => length);
      assert.ok(counts.every((count) => count === 1 || count === 2) && counts[2] === 1, String(counts));
    });

    test('a waiting worker is woken by a new job, a retry and a returned job', async () => {
      const on = bench();
      const first = on.takeOne('w1');
      const job = await on.submit();
      assert.equal((await first).seq, job.seq);
      const second = on.takeOne('w2');
      await on.queue.reaper.workerGone(on.id, 'w1', 'gone');
      assert.equal((await second).seq, job.seq);
      const third = on.takeOne('w3');
      await on.queue.finish(on.id, job.seq, { workerId: 'w2' }, { output: null, error: '"no"' });
      await on.queue.retry(on.id, job.seq);
      assert.equal((await third).seq, job.seq);
      assert.ok(on.published.filter(({ kind: what }) => what === 'queue').length >= 2);
    });

    test('other servers are woken for a waiting job, on SQLite not for one that was taken at once', async () => {
      const on = bench();
      const { store, emptyTake } = signalEmptyTake(on.store);
      on.newServer(store);
      const told = (): number => on.published.filter(({ kind: what }) => what === 'queue').length;
      const first = on.take('w1');
      await on.submit();
      assert.equal((await first).length, 1);
      const before = told();
      const nothingFound = emptyTake();
      const second = on.take('w1');
      await nothingFound;
      await on.submit();
      assert.equal((await second).length, 1);
      // On PostgreSQL every job waits, if only for a moment.
      const straight = kind === 'sqlite' ? before : before + 1;
      assert.equal(told(), straight);
      await on.submit();
      // A single server has no others to notify.
      assert.equal(told(), kind === 'sqlite' ? 0 : straight + 1);
    });

    test('a poll for cancellations is held although wake-ups of another server were missed', async () => {
      const on = bench();
      const poll = on.queue.waitForCancellations(on.id, 'w', POLL_MS, on.signal);
      on.wake({ kind: 'missed' });
      assert.equal(await isSettled(poll), false);
      on.wake({ kind: 'stop', endpointId: on.id, workerId: 'w', jobId: 'job' });
      assert.deepEqual(await poll, ['job']);
    });

    test('a paused worker gets no job and a soon answer; a dismissed one never gets a job', async (context) => {
      const on = bench();
      const waiting = on.take('w');
      on.queue.pauseWorker(on.id, 'w');
      assert.deepEqual(await waiting, []);
      await on.submit();
      context.mock.timers.enable({ apis: ['setTimeout'] });
      const polls = [on.take('w'), on.queue.waitForCancellations(on.id, 'w', POLL_MS, on.signal)];
      context.mock.timers.tick(1_000);
      assert.deepEqual(await Promise.all(polls.map(isSettled)), [false, false], 'held for a second');
      context.mock.timers.tick(4_000);
      assert.deepEqual(await Promise.all(polls.map(isSettled)), [true, true], 'not held for five');
      assert.deepEqual(await Promise.all(polls), [[], []]);
      context.mock.timers.reset();
      on.clock.advance(16 * SECOND);
      assert.equal((await on.take('w')).length, 1);
      await on.submit();
      on.queue.drainWorker(on.id, 'w');
      on.clock.advance(24 * HOUR);
      context.mock.timers.enable({ apis: ['setTimeout'] });
      const dismissed = on.take('w');
      context.mock.timers.tick(5_000);
      assert.deepEqual(await dismissed, []);
    });

    test('a worker that leaves during a take gets no jobs, and the take costs them no retry', async () => {
      const on = bench();
      const authenticator = Promise.withResolvers<void>();
      const reached = Promise.withResolvers<void>();
      on.newServer({
        ...on.store,
        take: async (...args) => {
          const taken = await on.store.take(...args);
          reached.resolve();
          await authenticator.promise;
          return taken;
        },
      });
      const [job, other] = [await on.submit(), await on.submit()];
      const leaving = new AbortController();
      const polls = [on.take('leaves', 1, leaving.signal), on.take('stays', 1)];
      await reached.promise;
      leaving.abort();
      authenticator.resolve();
      const [left = [], stayed = []] = await Promise.all(polls);
      assert.deepEqual(left, []);
      assert.equal(stayed.length, 1);
      const back = [job, other].find(({ seq }) => seq !== stayed[0]?.job.seq) as Job;
      const again = await on.takeOne('next');
      assert.deepEqual([again.seq, again.attempt, again.retries], [back.seq, 1, 0]);
    });

    test('a worker that leaves before its job was chosen leaves no job without an owner', async () => {
      const on = bench();
      const authenticator = Promise.withResolvers<void>();
      on.newServer({
        ...on.store,
        take: async (...args) => {
          await authenticator.promise;
          return on.store.take(...args);
        },
      });
      const leaving = new AbortController();
      const poll = on.take('leaves', 1, leaving.signal);
      const job = await on.submit();
      leaving.abort();
      authenticator.resolve();
      assert.deepEqual(await poll, []);
      const again = await on.takeOne('next');
      assert.deepEqual([again.seq, again.attempt, again.retries, again.workerId], [job.seq, 1, 0, 'next']);
    });

    test('a failed take is retried after a pause, and jobs that it took anyway are returned', async (context) => {
      const on = bench();
      const timers = context.mock.method(globalThis, 'setTimeout');
      let refusals = 3;
      let takes = 0;
      on.newServer({
        ...on.store,
        take: async (...args) => {
          takes += 1;
          if (refusals <= 0) return on.store.take(...args);
          refusals -= 1;
          if (refusals === 1) await on.store.take(...args);
          throw new Error('the store is away');
        },
      });
      const job = await on.submit();
      const taken = await on.takeOne('w');
      assert.deepEqual([taken.seq, taken.attempt], [job.seq, 1]);
      assert.equal(takes, 4);
      const pauses = timers.mock.calls.filter(({ arguments: [, delay] }) => delay === RETRY_MS);
      assert.equal(pauses.length, 3, 'a pause after each failure');
    });

    test('a job that is retried on the worker where it was cancelled is not cancelled again', async () => {
      const on = bench({ executionTimeout: 5 * SECOND });
      const job = await on.submit();
      await on.takeOne('w');
      await on.advance(5 * SECOND);
      assert.deepEqual(on.queue.cancellations.due(on.id, 'w'), [job.id]);
      await on.queue.retry(on.id, job.seq);
      assert.equal((await on.takeOne('w')).seq, job.seq);
      on.clock.advance(3 * SECOND);
      assert.deepEqual(on.queue.cancellations.due(on.id, 'w'), []);
    });

    test('a waiting caller sees an end that came before its submission was answered', async () => {
      const on = bench();
      const { promise: released, resolve: release } = Promise.withResolvers<void>();
      const { promise: stored, resolve: onStored } = Promise.withResolvers<void>();
      const { store, emptyTake } = signalEmptyTake(on.store);
      const queue = on.newServer({
        ...store,
        submit: async (...given) => {
          const outcome = await on.store.submit(...given);
          onStored();
          await released;
          return outcome;
        },
        find: () => assert.fail('it is told, and has to look for nothing'),
      });
      const nothingFound = emptyTake();
      const taking = on.take('w');
      // From then on it sees what comes in.
      await nothingFound;
      const calling = queue.submitAndWait(on.request(), POLL_MS, on.signal);
      await stored;
      // Where a take does not see what comes in with it, the next one does.
      if (!on.store.sameTurnTakes) void on.take('w2');
      const [taken] = await taking;
      assert.ok(taken !== undefined && (await on.finish('w', taken.job)));
      release();
      const { job, outcome } = await calling;
      assert.deepEqual(
        [job.seq, outcome?.job.status, outcome?.payloads.output],
        [taken.job.seq, 'COMPLETED', '"done"'],
      );
    });

    test('a caller waits no longer when the clock is set back meanwhile', async (context) => {
      const on = bench();
      const timers = context.mock.method(globalThis, 'setTimeout');
      const calling = on.queue.submitAndWait(
        on.request({ sync: { wait: SECOND, waitGiven: true } }),
        SECOND,
        on.signal,
      );
      on.clock.advance(-HOUR);
      const { outcome } = await calling;
      assert.equal(outcome?.job.status, 'IN_QUEUE');
      const delays = timers.mock.calls.map(({ arguments: [, delay] }) => delay);
      assert.ok(delays.includes(SECOND), `it waited ${delays.join(', ')} ms`);
    });

    test('a purge wakes waiting callers and leaves running jobs alone', async () => {
      const on = bench();
      const running = await on.submit();
      await on.takeOne('w');
      const waiting = await on.submit();
      const caller = on.queue.waitForEnd(on.id, waiting.seq, POLL_MS, on.signal);
      assert.equal(await on.queue.purge(on.id), 1);
      assert.equal(await caller, undefined);
      assert.equal(await on.status(running), 'IN_PROGRESS');
    });
  });
}

/** A store, and a promise for the next take that finds no job: its worker waits from then on. */
function signalEmptyTake(store: JobStore): { store: JobStore; emptyTake: () => Promise<void> } {
  let found = Promise.withResolvers<void>();
  return {
    store: {
      ...store,
      take: async (...args) => {
        const taken = await store.take(...args);
        if (taken.length === 0) found.resolve();
        return taken;
      },
    },
    emptyTake: async () => {
      found = Promise.withResolvers<void>();
      await found.promise;
      // The dispatcher has seen it too.
      await isSettled(found.promise);
    },
  };
}
