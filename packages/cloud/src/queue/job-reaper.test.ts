import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DATABASES } from '../../../testing/src/test-database.ts';
import type { Job } from '../domain/job-records.ts';
import { MAX_FREE_RETURNS } from '../domain/job-transitions.ts';
import { JobReaper } from './job-reaper.ts';
import type { JobUpdater } from './job-updater.ts';
import { queueFixtures, HOUR, SECOND } from './job-queue.fixture.ts';

const MINUTE = 60 * SECOND;

for (const kind of DATABASES) {
  describe(`jobs that lost their worker, or seem to have, on ${kind}`, () => {
    const bench = queueFixtures(kind);

    test('the job of a silent worker goes back to the head of the queue, once; then it has failed', async () => {
      const on = bench();
      const [job, next] = [await on.submit(), await on.submit()];
      await on.takeOne('w1');
      await on.advance(29 * SECOND);
      assert.equal(await on.status(job), 'IN_PROGRESS');
      await on.advance(12 * SECOND);
      assert.equal(await on.status(job), 'IN_QUEUE');
      assert.deepEqual(
        (await on.take('w2', 2)).map(({ job: { seq } }) => seq),
        [job.seq, next.seq],
      );
      assert.equal(await on.finish('w1', job), false, 'whoever was thought lost no longer counts');
      await on.advance(41 * SECOND, () => on.queue.heartbeats.recordRunningJobs(on.id, 'w1', [job.id]));
      assert.deepEqual(
        [await on.status(job), await on.error(job)],
        ['FAILED', '"the worker that ran the job was lost (after 1 retry)"'],
      );
      assert.equal(await on.finish('w2', job), false);
      assert.deepEqual(await on.queue.counts(on.id), {
        inQueue: 1,
        inProgress: 0,
        completed: 0,
        failed: 1,
        retried: 2,
      });
    });

    for (const how of ['gone', 'silent']) {
      test(`a worker that is ${how} costs no retry for jobs that it cannot have started`, async () => {
        const on = bench({ maxRetries: 0 });
        const jobs = [await on.submit(), await on.submit(), await on.submit()];
        on.queue.heartbeats.recordConcurrency(on.id, 'w', 1);
        assert.equal((await on.take('w', 3)).length, 3);
        if (how === 'gone')
          await on.queue.reaper.workerGone(on.id, 'w', 'the worker that ran the job was lost');
        else await on.advance(41 * SECOND);
        assert.deepEqual(await Promise.all(jobs.map((job) => on.status(job))), [
          'FAILED',
          'IN_QUEUE',
          'IN_QUEUE',
        ]);
        assert.deepEqual((await on.job(jobs[1] as Job))?.retries, 0);
        assert.deepEqual(await on.queue.counts(on.id), {
          inQueue: 2,
          inProgress: 0,
          completed: 0,
          failed: 1,
          retried: 0,
        });
      });
    }

    test('a job is not spared forever: it may be what kills its workers', async () => {
      const on = bench({ maxRetries: 0 });
      const last = await on.submit({ lowPriority: true });
      let losses = 0;
      for (; (await on.status(last)) === 'IN_QUEUE'; losses += 1) {
        const workerId = `w${losses}`;
        await on.submit();
        on.queue.heartbeats.recordConcurrency(on.id, workerId, 1);
        assert.equal((await on.take(workerId, 2)).length, 2);
        await on.queue.reaper.workerGone(on.id, workerId, 'gone');
      }
      assert.equal(losses, MAX_FREE_RETURNS + 1);
    });

    test('without retries, the job of a lost worker fails immediately; with more retries, later', async () => {
      const [none, three] = [bench({ maxRetries: 0 }), bench({ maxRetries: 3 })];
      const lost = await none.submit();
      await none.takeOne('w');
      await none.queue.reaper.workerGone(none.id, 'w', 'the container stopped');
      assert.deepEqual(
        [await none.status(lost), await none.error(lost)],
        ['FAILED', '"the container stopped (after 0 retries)"'],
      );
      const tried = await three.submit();
      for (let time = 0; time < 4; time += 1) {
        assert.equal(await three.status(tried), 'IN_QUEUE');
        await three.takeOne(`w${time}`);
        await three.queue.reaper.workerGone(three.id, `w${time}`, 'the container stopped');
      }
      assert.equal(await three.error(tried), '"the container stopped (after 3 retries)"');
    });

    test('pings keep a job, and so does an open request without any ping', async () => {
      const on = bench();
      const [pinged, polled] = [await on.submit(), await on.submit()];
      await on.takeOne('pings');
      await on.takeOne('polls');
      const left = on.queue.heartbeats.requestStarted(on.id, 'polls');
      await on.advance(
        5 * MINUTE,
        () => on.queue.heartbeats.recordRunningJobs(on.id, 'pings', [pinged.id]),
        10 * SECOND,
      );
      assert.deepEqual([await on.status(pinged), await on.status(polled)], ['IN_PROGRESS', 'IN_PROGRESS']);
      left();
      await on.advance(41 * SECOND, () => on.queue.heartbeats.recordRunningJobs(on.id, 'pings', [pinged.id]));
      assert.deepEqual([await on.status(pinged), await on.status(polled)], ['IN_PROGRESS', 'IN_QUEUE']);
    });

    test('a worker that reports idle has lost its job: noticed within 70 s, maybe requeued', async () => {
      const on = bench();
      const job = await on.submit();
      await on.takeOne('w');
      // It polls every 20 s and pings every 10 s, and does not list the job.
      let since = 0;
      const idles = (): void => {
        since += SECOND;
        if (since % (20 * SECOND) === SECOND) on.queue.heartbeats.recordTake(on.id, 'w', true);
        if (since % (10 * SECOND) === 0) on.queue.heartbeats.recordRunningJobs(on.id, 'w', []);
      };
      while ((await on.status(job)) === 'IN_PROGRESS' && since < 70 * SECOND) await on.advance(SECOND, idles);
      assert.ok(since >= 15 * SECOND, 'there is a grace for a result on its way');
      assert.deepEqual([await on.status(job), (await on.job(job))?.retries], ['IN_QUEUE', 0]);
      await on.takeOne('w2');
      assert.equal(await on.finish('w2', job), true);
    });

    test('a job that does not reach its worker costs no retry, up to a limit: it may kill the worker', async () => {
      const on = bench();
      const job = await on.submit();
      const lose = async (): Promise<(string | number | undefined)[]> => {
        await on.takeOne('w');
        await on.advance(20 * SECOND, () => on.queue.heartbeats.recordTake(on.id, 'w', true), 4 * SECOND);
        return [await on.status(job), (await on.job(job))?.retries];
      };
      for (let time = 0; time < MAX_FREE_RETURNS; time += 1) {
        // The limit outlives the server.
        if (time === 5) await on.newServer().recover();
        assert.deepEqual(await lose(), ['IN_QUEUE', 0], `delivery ${time + 1}`);
      }
      assert.equal((await on.queue.counts(on.id)).retried, 0);
      assert.deepEqual(await lose(), ['IN_QUEUE', 1]);
      assert.deepEqual(await lose(), ['FAILED', 1]);
      assert.match((await on.error(job)) ?? '', /^"the worker has neither the job nor a result of it: /);
    });

    test('a job that must never start twice fails when it does not reach its worker, as far as is known', async () => {
      const on = bench({ maxRetries: 0 });
      const job = await on.submit();
      await on.takeOne('w');
      await on.advance(20 * SECOND, () => on.queue.heartbeats.recordTake(on.id, 'w', true), 4 * SECOND);
      assert.equal(await on.status(job), 'FAILED');
    });

    test('a job that the worker had reported and then dropped without a result has failed', async () => {
      const on = bench();
      const job = await on.submit();
      await on.takeOne('w');
      await on.advance(20 * SECOND, () => on.queue.heartbeats.recordRunningJobs(on.id, 'w', [job.id]));
      let since = 0;
      while ((await on.status(job)) === 'IN_PROGRESS' && since < 70 * SECOND) {
        await on.advance(SECOND, () => {
          since += SECOND;
          on.queue.heartbeats.recordTake(on.id, 'w', true);
          on.queue.heartbeats.recordRunningJobs(on.id, 'w', []);
        });
      }
      assert.deepEqual(
        [await on.status(job), await on.error(job)],
        ['FAILED', '"the worker ended the job without a result (after 0 retries)"'],
      );
    });

    test('a job missing from pings is kept while its worker does not poll: a blocked loop lists nothing', async () => {
      const on = bench();
      const job = await on.submit();
      await on.takeOne('w');
      await on.advance(3 * MINUTE, () => on.queue.heartbeats.recordRunningJobs(on.id, 'w', []), 5 * SECOND);
      assert.equal(await on.status(job), 'IN_PROGRESS');
      assert.equal(await on.finish('w', job), true);
    });

    test('a truncated list proves nothing about the jobs that are not on it', async () => {
      const on = bench();
      const [listed, left] = [await on.submit(), await on.submit()];
      await on.take('w', 2);
      on.clock.advance(SECOND);
      on.queue.heartbeats.recordTake(on.id, 'w', false);
      await on.advance(
        2 * MINUTE,
        () => on.queue.heartbeats.recordRunningJobs(on.id, 'w', [listed.id], false),
        5 * SECOND,
      );
      assert.deepEqual([await on.status(listed), await on.status(left)], ['IN_PROGRESS', 'IN_PROGRESS']);
    });

    test('a result counts while a job is suspected lost, and a ping with it ends the suspicion', async () => {
      const on = bench();
      const [late, listed] = [await on.submit(), await on.submit()];
      await on.take('w', 2);
      on.queue.heartbeats.recordTake(on.id, 'w', true);
      await on.advance(14 * SECOND);
      assert.equal(await on.finish('w', late), true);
      on.queue.heartbeats.recordRunningJobs(on.id, 'w', [listed.id]);
      await on.advance(
        MINUTE,
        () => on.queue.heartbeats.recordRunningJobs(on.id, 'w', [listed.id]),
        10 * SECOND,
      );
      assert.deepEqual([await on.status(late), await on.status(listed)], ['COMPLETED', 'IN_PROGRESS']);
    });

    test('a restarted server restores the holders of jobs, and gives workers time to report', async () => {
      const on = bench();
      const [finished, silent] = [await on.submit(), await on.submit()];
      const [held] = [await on.takeOne('w1'), await on.takeOne('w2')];
      on.clock.advance(HOUR);
      await on.newServer().recover();
      await on.advance(29 * SECOND);
      assert.deepEqual([await on.status(finished), await on.status(silent)], ['IN_PROGRESS', 'IN_PROGRESS']);
      assert.equal(await on.finish('w1', finished, held.lease ?? undefined), true);
      await on.advance(12 * SECOND);
      assert.equal(await on.status(silent), 'IN_QUEUE');
    });

    test('a restarted server with its clock set back dispatches jobs in the order of submission', async () => {
      const on = bench();
      const first = await on.submit();
      on.clock.advance(-HOUR);
      await on.newServer().recover();
      const second = await on.submit();
      assert.deepEqual([(await on.takeOne('w')).id, (await on.takeOne('w')).id], [first.id, second.id]);
    });

    test('a server that was paused gives its workers time to report', async () => {
      const on = bench();
      const job = await on.submit();
      await on.takeOne('w');
      on.clock.advance(40 * SECOND);
      on.queue.reaper.onProcessResumed();
      await on.sweep();
      assert.equal(await on.status(job), 'IN_PROGRESS');
      await on.advance(45 * SECOND);
      assert.equal(await on.status(job), 'IN_QUEUE');
    });

    test('a server that was paused gives time also to workers whose jobs were suspected lost before', async () => {
      const on = bench({ maxRetries: 0 });
      const job = await on.submit();
      await on.takeOne('w');
      on.queue.heartbeats.recordTake(on.id, 'w', true);
      on.clock.advance(40 * SECOND);
      on.queue.reaper.onProcessResumed();
      await on.sweep();
      assert.equal(await on.status(job), 'IN_PROGRESS');
      on.queue.heartbeats.recordRunningJobs(on.id, 'w', [job.id]);
      await on.advance(20 * SECOND);
      assert.equal(await on.finish('w', job), true);
    });

    test("with the clock set back, a dead worker's job returns as soon, and a live one's stays", async () => {
      const on = bench();
      const [dead, living] = [await on.submit(), await on.submit()];
      await on.takeOne('dead');
      await on.takeOne('living');
      const pings = (): void => on.queue.heartbeats.recordRunningJobs(on.id, 'living', [living.id]);
      await on.advance(5 * SECOND, pings);
      on.clock.advance(-HOUR);
      await on.advance(50 * SECOND, pings);
      assert.deepEqual([await on.status(dead), await on.status(living)], ['IN_QUEUE', 'IN_PROGRESS']);
      assert.deepEqual(
        (await on.queue.workers(on.id)).map(({ workerId }) => workerId),
        ['living'],
      );
      // Another server knows of them from the stored heartbeats.
      on.newServer();
      assert.deepEqual(
        (await on.queue.workers(on.id)).map(({ workerId }) => workerId),
        ['living'],
      );
    });

    test('heartbeats are stored for other servers also after the clock was set back', async () => {
      const on = bench();
      on.queue.heartbeats.recordHeartbeat(on.id, 'before');
      await on.sweep();
      on.clock.advance(-HOUR);
      on.queue.heartbeats.recordHeartbeat(on.id, 'after');
      await on.sweep();
      assert.deepEqual((await on.store.workers(on.id, 0)).map(({ workerId }) => workerId).toSorted(), [
        'after',
        'before',
      ]);
    });

    test('workers that have been silent for an hour are forgotten', async () => {
      const on = bench();
      on.queue.heartbeats.recordHeartbeat(on.id, 'long ago');
      await on.sweep();
      on.clock.advance(2 * HOUR);
      on.queue.heartbeats.recordHeartbeat(on.id, 'now');
      await on.sweep();
      assert.deepEqual(
        (await on.store.workers(on.id, 0)).map(({ workerId }) => workerId),
        ['now'],
      );
    });

    test('where heartbeats cannot be stored, held jobs are still compared and old rows still deleted', async () => {
      const on = bench();
      const done: string[] = [];
      const reaper = new JobReaper({
        clock: on.clock,
        heartbeats: on.queue.heartbeats,
        updater: {} as JobUpdater,
        store: {
          ...on.store,
          saveHeartbeats: () => Promise.reject(new Error('the store is away')),
          listRunning: async () => (done.push('compared'), []),
          compact: async () => void done.push('tidied'),
        },
      });
      on.queue.heartbeats.recordHeartbeat(on.id, 'w');
      await assert.rejects(reaper.sweepLost(), /the store is away/);
      assert.deepEqual(done, ['compared', 'tidied']);
    });

    test('a sweep reports whether there may be more, for any number of due jobs, with and without leases', async () => {
      const on = bench();
      const first = await on.submit();
      await on.takeOne('w');
      for (let count = 0; count < 3; count += 1) await on.submit({ ttl: 10 * SECOND });
      on.clock.advance(11 * SECOND);
      assert.equal(await on.queue.reaper.sweepDue(2), true);
      while (await on.queue.reaper.sweepDue(2));
      assert.deepEqual([await on.status(first), (await on.queue.counts(on.id)).inQueue], ['IN_PROGRESS', 0]);
    });

    test('a worker that another server has heard from is alive', async () => {
      const on = bench();
      const job = await on.submit();
      await on.takeOne('w');
      const elsewhere = (): Promise<void> =>
        on.store.saveHeartbeats([
          {
            endpointId: on.id,
            workerId: 'w',
            seenAt: on.clock.now(),
            busy: 1,
            unhealthy: null,
            accelerated: false,
          },
        ]);
      for (let time = 0; time < 6; time += 1) {
        await elsewhere();
        await on.advance(20 * SECOND);
      }
      assert.equal(await on.status(job), 'IN_PROGRESS');
      await on.advance(MINUTE);
      assert.equal(await on.status(job), 'IN_QUEUE');
    });

    test('the jobs of a worker that left are requeued, unless it is heard elsewhere or runs', async () => {
      const on = bench();
      for (let count = 0; count < 4; count += 1) await on.submit();
      const leave = async (workerId: string): Promise<Job> => {
        const left = on.queue.heartbeats.requestStarted(on.id, workerId);
        const job = await on.takeOne(workerId);
        left();
        return job;
      };
      const [gone, back, moved, blocked] = [
        await leave('gone'),
        await leave('back'),
        await leave('moved'),
        await leave('blocked'),
      ];
      on.instances.add('blocked');
      const since = on.clock.now();
      on.clock.advance(5 * SECOND);
      on.queue.heartbeats.requestStarted(on.id, 'back');
      await on.store.saveHeartbeats([
        {
          endpointId: on.id,
          workerId: 'moved',
          seenAt: on.clock.now(),
          busy: 1,
          unhealthy: null,
          accelerated: false,
        },
        { endpointId: on.id, workerId: 'gone', seenAt: since, busy: 1, unhealthy: null, accelerated: false },
      ]);
      for (const workerId of ['gone', 'back', 'moved', 'blocked'])
        await on.queue.reaper.workerLeft(on.id, workerId, since, 'it went away');
      assert.deepEqual(await Promise.all([gone, back, moved, blocked].map((job) => on.status(job))), [
        'IN_QUEUE',
        'IN_PROGRESS',
        'IN_PROGRESS',
        'IN_PROGRESS',
      ]);
    });
  });
}
