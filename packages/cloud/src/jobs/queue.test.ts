import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DATABASES } from '../../../../tests/support/databases.ts';
import type { Job } from '../store/job-records.ts';
import { benches, HOUR, POLL_MS, SECOND } from './test-bench.ts';
import type { RequestTerms } from './submission.ts';

const MINUTE = 60 * SECOND;

for (const kind of DATABASES) {
  describe(`the queue, on ${kind}`, () => {
    const bench = benches(kind);

    test('a job that nobody takes lives as long as it may, and is gone then', async () => {
      const on = bench();
      const [day, short] = [await on.submit(), await on.submit({ ttl: 10 * SECOND })];
      await on.pass(9_999);
      assert.equal(await on.status(short), 'IN_QUEUE');
      await on.pass(1);
      assert.equal(await on.status(short), 'gone');
      on.clock.advance(24 * HOUR - 10_001);
      await on.sweep();
      assert.equal(await on.status(day), 'IN_QUEUE');
      await on.pass(1);
      assert.equal(await on.status(day), 'gone');
    });

    test('a result is kept for 30 minutes, a synchronous one for 1 to 5 as the wait was, or as the request or endpoint says', async () => {
      const on = bench();
      const sync = (wait: number, waitGiven: boolean): RequestTerms => ({ sync: { wait, waitGiven } });
      const cases: [RequestTerms, number][] = [
        [{}, 30 * MINUTE], [sync(90 * SECOND, false), MINUTE], [sync(SECOND, true), MINUTE], [sync(2 * MINUTE, true), 2 * MINUTE], [sync(5 * MINUTE, true), 5 * MINUTE], [{ retention: 7 * SECOND }, 7 * SECOND], [{ ttl: 20 * SECOND }, 20 * SECOND],
      ];
      for (const [terms, kept] of cases) {
        const job = await on.submit(terms);
        await on.takeOne('w');
        assert.equal(await on.finish('w', job), true);
        on.clock.advance(kept - 1);
        await on.sweep();
        assert.equal(await on.status(job), 'COMPLETED', JSON.stringify(terms));
        await on.pass(1);
        assert.equal(await on.status(job), 'gone', JSON.stringify(terms));
      }
      const own = bench({ retention: 3 * SECOND });
      const job = await own.submit(sync(5 * MINUTE, true));
      await own.takeOne('w');
      await own.finish('w', job);
      await own.pass(3 * SECOND);
      assert.equal(await own.status(job), 'gone');
    });

    test('a job may run as long as its execution timeout says, however long its worker lives', async () => {
      const on = bench({ executionTimeout: 10 * MINUTE });
      const [limited, endless] = [await on.submit(), await on.submit({ executionTimeout: 0 })];
      await on.take('w', 2);
      const lives = (): void => on.queue.presence.lists(on.id, 'w', [limited.id, endless.id]);
      await on.pass(10 * MINUTE - 1, lives, 5 * SECOND);
      assert.equal(await on.status(limited), 'IN_PROGRESS');
      await on.pass(1, lives);
      assert.equal(await on.status(limited), 'TIMED_OUT');
      assert.deepEqual(on.queue.stops.due(on.id, 'w'), [limited.id]);
      assert.ok(on.published.some((wakeup) => wakeup.kind === 'stop' && wakeup.jobId === limited.id));
      await on.pass(2 * HOUR, () => on.queue.presence.lists(on.id, 'w', [endless.id]), 20 * SECOND);
      assert.equal(await on.status(endless), 'IN_PROGRESS');
    });

    test('a retry by hand starts the time to live anew', async () => {
      const on = bench();
      const job = await on.submit({ ttl: HOUR, retention: HOUR });
      await on.pass(50 * MINUTE, undefined, 10 * MINUTE);
      await on.takeOne('w');
      await on.queue.finish(on.id, job.seq, { workerId: 'w' }, { output: null, error: '"no"' });
      assert.equal((await on.queue.retry(on.id, job.seq))?.after.status, 'IN_QUEUE');
      await on.pass(59 * MINUTE, undefined, 10 * MINUTE);
      assert.equal(await on.status(job), 'IN_QUEUE');
      await on.pass(MINUTE);
      assert.equal(await on.status(job), 'gone');
    });

    test('the job of a silent worker goes back to the head of the queue, once; then it has failed', async () => {
      const on = bench();
      const [job, next] = [await on.submit(), await on.submit()];
      await on.takeOne('w1');
      await on.pass(29 * SECOND);
      assert.equal(await on.status(job), 'IN_PROGRESS');
      await on.pass(12 * SECOND);
      assert.equal(await on.status(job), 'IN_QUEUE');
      assert.deepEqual((await on.take('w2', 2)).map(({ job: { seq } }) => seq), [job.seq, next.seq]);
      assert.equal(await on.finish('w1', job), false, 'whoever was thought lost no longer counts');
      await on.pass(41 * SECOND, () => on.queue.presence.lists(on.id, 'w1', [job.id]));
      assert.deepEqual([await on.status(job), await on.error(job)], ['FAILED', '"the worker that ran the job was lost (after 1 retry)"']);
      assert.equal(await on.finish('w2', job), false);
      assert.deepEqual(await on.queue.counts(on.id), { inQueue: 1, inProgress: 0, completed: 0, failed: 1, retried: 2 });
    });

    for (const how of ['gone', 'silent']) {
      test(`a worker that is ${how} costs the jobs no retry that it cannot have begun`, async () => {
        const on = bench({ maxRetries: 0 });
        const jobs = [await on.submit(), await on.submit(), await on.submit()];
        on.queue.presence.hasPlaces(on.id, 'w', 1);
        assert.equal((await on.take('w', 3)).length, 3);
        if (how === 'gone') await on.queue.caretaker.workerGone(on.id, 'w', 'the worker that ran the job was lost');
        else await on.pass(41 * SECOND);
        assert.deepEqual(await Promise.all(jobs.map((job) => on.status(job))), ['FAILED', 'IN_QUEUE', 'IN_QUEUE']);
        assert.deepEqual((await on.job(jobs[1] as Job))?.retries, 0);
        assert.deepEqual(await on.queue.counts(on.id), { inQueue: 2, inProgress: 0, completed: 0, failed: 1, retried: 0 });
      });
    }

    test('a job is not spared for ever: it may be what ends its workers all the same', async () => {
      const on = bench({ maxRetries: 0 });
      const last = await on.submit({ lowPriority: true });
      let losses = 0;
      for (; (await on.status(last)) === 'IN_QUEUE'; losses += 1) {
        const workerId = `w${losses}`;
        await on.submit();
        on.queue.presence.hasPlaces(on.id, workerId, 1);
        assert.equal((await on.take(workerId, 2)).length, 2);
        await on.queue.caretaker.workerGone(on.id, workerId, 'gone');
      }
      assert.equal(losses, 11);
    });

    test('an endpoint without retries fails the job of a lost worker at once, one with more tries longer', async () => {
      const [none, three] = [bench({ maxRetries: 0 }), bench({ maxRetries: 3 })];
      const lost = await none.submit();
      await none.takeOne('w');
      await none.queue.caretaker.workerGone(none.id, 'w', 'the container stopped');
      assert.deepEqual([await none.status(lost), await none.error(lost)], ['FAILED', '"the container stopped (after 0 retries)"']);
      const tried = await three.submit();
      for (let time = 0; time < 4; time += 1) {
        assert.equal(await three.status(tried), 'IN_QUEUE');
        await three.takeOne(`w${time}`);
        await three.queue.caretaker.workerGone(three.id, `w${time}`, 'the container stopped');
      }
      assert.equal(await three.error(tried), '"the container stopped (after 3 retries)"');
    });

    test('pings keep a job, and so does an open request without any ping', async () => {
      const on = bench();
      const [pinged, polled] = [await on.submit(), await on.submit()];
      await on.takeOne('pings');
      await on.takeOne('polls');
      const left = on.queue.presence.enter(on.id, 'polls');
      await on.pass(5 * MINUTE, () => on.queue.presence.lists(on.id, 'pings', [pinged.id]), 10 * SECOND);
      assert.deepEqual([await on.status(pinged), await on.status(polled)], ['IN_PROGRESS', 'IN_PROGRESS']);
      left();
      await on.pass(41 * SECOND, () => on.queue.presence.lists(on.id, 'pings', [pinged.id]));
      assert.deepEqual([await on.status(pinged), await on.status(polled)], ['IN_PROGRESS', 'IN_QUEUE']);
    });

    test('a worker that says it is idle has lost its job: noticed within 70 s, and given to another if it never showed it', async () => {
      const on = bench();
      const job = await on.submit();
      await on.takeOne('w');
      // It polls every 20 s and pings every 10 s, and knows nothing of the job.
      let since = 0;
      const idles = (): void => {
        since += SECOND;
        if (since % (20 * SECOND) === SECOND) on.queue.presence.asksForWork(on.id, 'w', true);
        if (since % (10 * SECOND) === 0) on.queue.presence.lists(on.id, 'w', []);
      };
      while ((await on.status(job)) === 'IN_PROGRESS' && since < 70 * SECOND) await on.pass(SECOND, idles);
      assert.ok(since >= 15 * SECOND, 'there is a grace for a result on its way');
      assert.deepEqual([await on.status(job), (await on.job(job))?.retries], ['IN_QUEUE', 1]);
      await on.takeOne('w2');
      assert.equal(await on.finish('w2', job), true);
    });

    test('a job that the worker had shown and then dropped without a result has failed', async () => {
      const on = bench();
      const job = await on.submit();
      await on.takeOne('w');
      await on.pass(20 * SECOND, () => on.queue.presence.lists(on.id, 'w', [job.id]));
      let since = 0;
      while ((await on.status(job)) === 'IN_PROGRESS' && since < 70 * SECOND) {
        await on.pass(SECOND, () => {
          since += SECOND;
          on.queue.presence.asksForWork(on.id, 'w', true);
          on.queue.presence.lists(on.id, 'w', []);
        });
      }
      assert.deepEqual([await on.status(job), await on.error(job)], ['FAILED', '"the worker ended the job without a result (after 0 retries)"']);
    });

    test('a job that is missing from pings is kept while its worker asks for nothing: a blocked loop lists nothing', async () => {
      const on = bench();
      const job = await on.submit();
      await on.takeOne('w');
      await on.pass(3 * MINUTE, () => on.queue.presence.lists(on.id, 'w', []), 5 * SECOND);
      assert.equal(await on.status(job), 'IN_PROGRESS');
      assert.equal(await on.finish('w', job), true);
    });

    test('a list that is cut off says nothing about what is not on it', async () => {
      const on = bench();
      const [listed, left] = [await on.submit(), await on.submit()];
      await on.take('w', 2);
      on.clock.advance(SECOND);
      on.queue.presence.asksForWork(on.id, 'w', false);
      await on.pass(2 * MINUTE, () => on.queue.presence.lists(on.id, 'w', [listed.id], false), 5 * SECOND);
      assert.deepEqual([await on.status(listed), await on.status(left)], ['IN_PROGRESS', 'IN_PROGRESS']);
    });

    test('a result that comes while the worker is doubted counts, and a list that names the job ends the doubt', async () => {
      const on = bench();
      const [late, listed] = [await on.submit(), await on.submit()];
      await on.take('w', 2);
      on.queue.presence.asksForWork(on.id, 'w', true);
      await on.pass(14 * SECOND);
      assert.equal(await on.finish('w', late), true);
      on.queue.presence.lists(on.id, 'w', [listed.id]);
      await on.pass(MINUTE, () => on.queue.presence.lists(on.id, 'w', [listed.id]), 10 * SECOND);
      assert.deepEqual([await on.status(late), await on.status(listed)], ['COMPLETED', 'IN_PROGRESS']);
    });

    test('a server that starts anew knows who holds what, and gives them time to show themselves', async () => {
      const on = bench();
      const [finished, silent] = [await on.submit(), await on.submit()];
      const [held] = [await on.takeOne('w1'), await on.takeOne('w2')];
      on.clock.advance(HOUR);
      await on.newServer().recover();
      await on.pass(29 * SECOND);
      assert.deepEqual([await on.status(finished), await on.status(silent)], ['IN_PROGRESS', 'IN_PROGRESS']);
      assert.equal(await on.finish('w1', finished, held.lease ?? undefined), true);
      await on.pass(12 * SECOND);
      assert.equal(await on.status(silent), 'IN_QUEUE');
    });

    test('a server that was away itself gives its workers time to show themselves', async () => {
      const on = bench();
      const job = await on.submit();
      await on.takeOne('w');
      on.clock.advance(40 * SECOND);
      on.queue.caretaker.awake();
      await on.sweep();
      assert.equal(await on.status(job), 'IN_PROGRESS');
      await on.pass(45 * SECOND);
      assert.equal(await on.status(job), 'IN_QUEUE');
    });

    test('workers are written down for other servers also after the clock was set back', async () => {
      const on = bench();
      on.queue.presence.seen(on.id, 'before');
      await on.sweep();
      on.clock.advance(-HOUR);
      on.queue.presence.seen(on.id, 'after');
      await on.sweep();
      assert.deepEqual((await on.store.workers(on.id, 0)).map(({ workerId }) => workerId).toSorted(), ['after', 'before']);
    });

    test('workers that nobody has heard of for an hour are forgotten', async () => {
      const on = bench();
      on.queue.presence.seen(on.id, 'long ago');
      await on.sweep();
      on.clock.advance(2 * HOUR);
      on.queue.presence.seen(on.id, 'now');
      await on.sweep();
      assert.deepEqual((await on.store.workers(on.id, 0)).map(({ workerId }) => workerId), ['now']);
    });

    test('however many jobs are due, with leases among them or without, a sweep says that there may be more', async () => {
      const on = bench();
      const first = await on.submit();
      await on.takeOne('w');
      for (let count = 0; count < 3; count += 1) await on.submit({ ttl: 10 * SECOND });
      on.clock.advance(11 * SECOND);
      assert.equal(await on.queue.caretaker.sweep(2), true);
      while (await on.queue.caretaker.sweep(2));
      assert.deepEqual([await on.status(first), (await on.queue.counts(on.id)).inQueue], ['IN_PROGRESS', 0]);
    });

    test('a worker that another server has heard of lives', async () => {
      const on = bench();
      const job = await on.submit();
      await on.takeOne('w');
      const elsewhere = (): Promise<void> => on.store.noteWorkers([{ endpointId: on.id, workerId: 'w', seenAt: on.clock.now(), busy: 1, unhealthy: null }]);
      for (let time = 0; time < 6; time += 1) {
        await elsewhere();
        await on.pass(20 * SECOND);
      }
      assert.equal(await on.status(job), 'IN_PROGRESS');
      await on.pass(MINUTE);
      assert.equal(await on.status(job), 'IN_QUEUE');
    });

    test('jobs that did not reach their worker go back as if never taken', async () => {
      const on = bench();
      const job = await on.submit();
      const taken = await on.take('w');
      await on.queue.giveBack(on.id, taken);
      assert.deepEqual([(await on.job(job))?.status, (await on.job(job))?.attempt, (await on.job(job))?.retries], ['IN_QUEUE', 0, 0]);
      assert.equal((await on.takeOne('w2')).seq, job.seq);
      await on.queue.giveBack(on.id, taken);
      assert.equal((await on.job(job))?.workerId, 'w2', 'an old hold takes nothing away from a new one');
    });

    test('waiting workers get one job each before any gets two, and no more than they asked for', async () => {
      const on = bench();
      const polls = [on.take('a', 3), on.take('b', 3), on.take('c', 1)];
      await Promise.all(Array.from({ length: 4 }, () => on.submit()));
      const counts = (await Promise.all(polls)).map(({ length }) => length);
      assert.ok(counts.every((count) => count === 1 || count === 2) && counts[2] === 1, String(counts));
    });

    test('a waiting worker is woken by a new job, a retry and a job that goes back', async () => {
      const on = bench();
      const first = on.takeOne('w1');
      const job = await on.submit();
      assert.equal((await first).seq, job.seq);
      const second = on.takeOne('w2');
      await on.queue.caretaker.workerGone(on.id, 'w1', 'gone');
      assert.equal((await second).seq, job.seq);
      const third = on.takeOne('w3');
      await on.queue.finish(on.id, job.seq, { workerId: 'w2' }, { output: null, error: '"no"' });
      await on.queue.retry(on.id, job.seq);
      assert.equal((await third).seq, job.seq);
      assert.ok(on.published.filter(({ kind: what }) => what === 'queue').length >= 2);
    });

    test('other servers are told of a job that waits, and not of one that went straight to a worker', async () => {
      const on = bench();
      const told = (): number => on.published.filter(({ kind: what }) => what === 'queue').length;
      const first = on.take('w1');
      await on.submit();
      assert.equal((await first).length, 1);
      const before = told();
      const second = on.take('w1');
      // Until its take has found nothing.
      await new Promise((resolve) => setTimeout(resolve, 100));
      await on.submit();
      assert.equal((await second).length, 1);
      assert.equal(told(), before);
      await on.submit();
      // One server alone has nobody to tell.
      assert.equal(told(), kind === 'sqlite' ? 0 : before + 1);
    });

    test('a worker that rests gets nothing and is answered soon; a dismissed one never gets anything again', async () => {
      const on = bench();
      const waiting = on.take('w');
      on.queue.rest(on.id, 'w');
      assert.deepEqual(await waiting, []);
      await on.submit();
      const from = performance.now();
      const [taken, stops] = await Promise.all([on.take('w'), on.queue.jobsToStop(on.id, 'w', POLL_MS, on.signal)]);
      assert.deepEqual([taken, stops], [[], []]);
      const held = performance.now() - from;
      assert.ok(held >= 1_000 && held < 5_000, `held ${held} ms`);
      on.clock.advance(16 * SECOND);
      assert.equal((await on.take('w')).length, 1);
      await on.submit();
      on.queue.dismiss(on.id, 'w');
      on.clock.advance(24 * HOUR);
      assert.deepEqual(await on.take('w'), []);
    });

    test('a worker that leaves while jobs are on their way to it gets none, and they lose nothing by it', async () => {
      const on = bench();
      const gate = Promise.withResolvers<void>();
      const reached = Promise.withResolvers<void>();
      on.newServer({ ...on.store, take: async (...args) => {
        const taken = await on.store.take(...args);
        reached.resolve();
        await gate.promise;
        return taken;
      } });
      const [job, other] = [await on.submit(), await on.submit()];
      const leaving = new AbortController();
      const polls = [on.take('leaves', 1, leaving.signal), on.take('stays', 1)];
      await reached.promise;
      leaving.abort();
      gate.resolve();
      const [left = [], stayed = []] = await Promise.all(polls);
      assert.deepEqual(left, []);
      assert.equal(stayed.length, 1);
      const back = [job, other].find(({ seq }) => seq !== stayed[0]?.job.seq) as Job;
      const again = await on.takeOne('next');
      assert.deepEqual([again.seq, again.attempt, again.retries], [back.seq, 1, 0]);
    });

    test('a worker that leaves before its job was chosen leaves no job behind with nobody', async () => {
      const on = bench();
      const gate = Promise.withResolvers<void>();
      on.newServer({ ...on.store, take: async (...args) => {
        await gate.promise;
        return on.store.take(...args);
      } });
      const leaving = new AbortController();
      const poll = on.take('leaves', 1, leaving.signal);
      const job = await on.submit();
      leaving.abort();
      gate.resolve();
      assert.deepEqual(await poll, []);
      const again = await on.takeOne('next');
      assert.deepEqual([again.seq, again.attempt, again.retries, again.workerId], [job.seq, 1, 0, 'next']);
    });

    test('a store that refuses to hand out is asked again, with a pause, and what it took all the same goes back', async () => {
      const on = bench();
      let refusals = 3;
      const asked: number[] = [];
      on.newServer({ ...on.store, take: async (...args) => {
        asked.push(performance.now());
        if (refusals <= 0) return on.store.take(...args);
        refusals -= 1;
        if (refusals === 1) await on.store.take(...args);
        throw new Error('the store is away');
      } });
      const job = await on.submit();
      const taken = await on.takeOne('w');
      assert.deepEqual([taken.seq, taken.attempt], [job.seq, 1]);
      assert.equal(asked.length, 4);
      assert.ok((asked[3] ?? 0) - (asked[0] ?? 0) >= 600, 'it was not asked in a tight loop');
    });

    test('a job that is tried again on the worker that it was stopped on is not stopped again', async () => {
      const on = bench({ executionTimeout: 5 * SECOND });
      const job = await on.submit();
      await on.takeOne('w');
      await on.pass(5 * SECOND);
      assert.deepEqual(on.queue.stops.due(on.id, 'w'), [job.id]);
      await on.queue.retry(on.id, job.seq);
      assert.equal((await on.takeOne('w')).seq, job.seq);
      on.clock.advance(3 * SECOND);
      assert.deepEqual(on.queue.stops.due(on.id, 'w'), []);
    });

    test('what a worker holds that left goes back, unless it came back, another server has heard of it, or its instance runs', async () => {
      const on = bench();
      for (let count = 0; count < 4; count += 1) await on.submit();
      const leave = async (workerId: string): Promise<Job> => {
        const left = on.queue.presence.enter(on.id, workerId);
        const job = await on.takeOne(workerId);
        left();
        return job;
      };
      const [gone, back, moved, blocked] = [await leave('gone'), await leave('back'), await leave('moved'), await leave('blocked')];
      on.instances.add('blocked');
      const since = on.clock.now();
      on.clock.advance(5 * SECOND);
      on.queue.presence.enter(on.id, 'back');
      await on.store.noteWorkers([{ endpointId: on.id, workerId: 'moved', seenAt: on.clock.now(), busy: 1, unhealthy: null }, { endpointId: on.id, workerId: 'gone', seenAt: since, busy: 1, unhealthy: null }]);
      for (const workerId of ['gone', 'back', 'moved', 'blocked']) await on.queue.caretaker.workerLeft(on.id, workerId, since, 'it went away');
      assert.deepEqual(await Promise.all([gone, back, moved, blocked].map((job) => on.status(job))), ['IN_QUEUE', 'IN_PROGRESS', 'IN_PROGRESS', 'IN_PROGRESS']);
    });

    test('a caller who waits hears of an end that came before its submission was answered', async () => {
      const on = bench();
      const { promise: released, resolve: release } = Promise.withResolvers<void>();
      const queue = on.newServer({
        ...on.store,
        submit: async (...given) => {
          const outcome = await on.store.submit(...given);
          await released;
          return outcome;
        },
        find: () => assert.fail('it is told, and has to look for nothing'),
      });
      const taking = on.take('w');
      // Until the take has found nothing: from then on it meets what comes in.
      await new Promise((resolve) => setTimeout(resolve, 100));
      const calling = queue.submitAndWait(on.request(), POLL_MS, on.signal);
      const [taken] = await taking;
      assert.ok(taken !== undefined && (await on.finish('w', taken.job)));
      release();
      const { job, outcome } = await calling;
      assert.deepEqual([job.seq, outcome?.job.status, outcome?.payloads.output], [taken.job.seq, 'COMPLETED', '"done"']);
    });

    test('a purge tells those who wait, and leaves who runs alone', async () => {
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
