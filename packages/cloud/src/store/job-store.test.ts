import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { DATABASES } from '../../../testing/src/test-database.ts';
import { createMigratedDatabase } from '../../../testing/src/migrated-database.ts';
import type { ChunkPosition, Job, JobWithPayloads } from '../domain/job-records.ts';
import * as transitions from '../domain/job-transitions.ts';
import { newJob } from '../queue/job-submission.ts';
import { JobStoreFixture } from './job-store.fixture.ts';
import { NOW, queueSettings } from './queue-settings.fixture.ts';
import type { JobStore } from './job-store.ts';

for (const kind of DATABASES) {
  describe(`job store on ${kind}`, () => {
    const fixture = new JobStoreFixture(kind);
    const { made, submit, submitElsewhere, takeAll } = fixture;
    let store: JobStore;

    before(async () => {
      store = await fixture.open();
    });
    after(fixture.close);

    test('a job comes back with every field and its text to the letter', async () => {
      const whole = made('fields', { webhook: 'https://example.com', lowPriority: true });
      assert.deepEqual(await store.submit(whole), {
        job: whole.job,
        created: true,
        seenByTakes: kind === 'sqlite',
        bodyHash: null,
      });
      assert.deepEqual(await store.find('fields', whole.job.seq), whole);
      assert.equal(await store.find('fields', 999_999), undefined);
      assert.equal(await store.find('elsewhere', whole.job.seq), undefined);
    });

    test('the highest number is that of the newest job, whichever endpoint it is of, and of none 0', async () => {
      const fresh = await createMigratedDatabase(kind);
      try {
        const jobs = fresh.database.jobs();
        assert.equal(await jobs.highestSeq(), 0);
        for (const [endpointId, seq] of [
          ['a', 5],
          ['c', 9],
          ['b', 7],
        ] as const)
          await jobs.submit(newJob(queueSettings(endpointId), 'one', '{"input":1}', {}, seq, NOW));
        assert.equal(await fresh.database.jobs().highestSeq(), 9);
      } finally {
        await fresh.drop();
      }
    });

    test('what was counted apart is put together, and counts on', async () => {
      const job = await submit('folded');
      await submitElsewhere('folded', 'one');
      await takeAll('folded', 1);
      const before = await store.counts('folded');
      await store.compact(NOW);
      assert.deepEqual(await store.counts('folded'), before);
      await store.change('folded', job.seq, (current) => transitions.cancel(current, NOW));
      assert.deepEqual(await store.counts('folded'), { ...before, inProgress: before.inProgress - 1 });
    });

    test('the bytes that wait are estimated from a part of a queue', async () => {
      await Promise.all(Array.from({ length: 320 }, () => submit('sized')));
      const exact = await store.queuedBytes();
      const estimate = await store.estimateQueuedBytes();
      // Requests of this test differ by a digit or two of their number.
      assert.ok(exact > 0 && Math.abs(estimate - exact) < exact / 20, `${estimate} for ${exact}`);
      assert.equal(await store.estimateQueuedBytes('nobody'), 0);
      await takeAll('sized', 320);
      await store.removeEndpoint('sized');
    });

    test('submitting the same job again changes nothing: a store that answered late may be asked twice', async () => {
      const whole = made('twice');
      assert.equal((await store.submit(whole)).created, true);
      assert.equal((await store.submit(whole)).created, true);
      assert.equal((await store.counts('twice')).inQueue, 1);
      const other = made('twice');
      const collision = await store.submit({ ...other, job: { ...other.job, seq: whole.job.seq } });
      assert.deepEqual(
        { created: collision.created, bodyHash: collision.bodyHash },
        { created: false, bodyHash: null },
      );
    });

    test('jobs that come together come back each as it was, also where one of them was submitted before', async () => {
      const many = Array.from({ length: 20 }, (_, index) =>
        made(
          'together',
          index % 2 === 0 ? {} : { lowPriority: true, webhook: `https://example.com/${index}` },
        ),
      );
      const before = many[3] as JobWithPayloads;
      const keyed = { key: 'once', bodyHash: 'hash' };
      await store.submit(before);
      const answers = await Promise.all(
        many.map((one, index) => store.submit(one, index === 9 ? keyed : undefined)),
      );
      assert.deepEqual(
        answers.map(({ job, created }) => [job.seq, created]),
        many.map(({ job }) => [job.seq, true]),
      );
      for (const one of many) assert.deepEqual(await store.find('together', one.job.seq), one);
      assert.equal((await store.submit(made('together'), keyed)).job.seq, many[9]?.job.seq);
      assert.equal((await store.counts('together')).inQueue, 20);
    });

    test('a change sees the job as it is, and refusing changes nothing', async () => {
      const job = await submit('change');
      const [taken] = await takeAll('change');
      const stale = await store.change('change', job.seq, (current) =>
        transitions.finish(current, { workerId: 'other' }, { output: '1', error: null }, NOW),
      );
      assert.equal(stale?.changed, false);
      const done = await store.change('change', job.seq, (current) =>
        transitions.finish(
          current,
          { workerId: 'w1', lease: taken?.job.lease ?? '' },
          { output: '{"x":1.0}', error: null },
          NOW + 9,
        ),
      );
      assert.equal(done?.changed, true);
      assert.deepEqual([done.before.status, done.after.status], ['IN_PROGRESS', 'COMPLETED']);
      assert.equal((await store.find('change', job.seq))?.payloads.output, '{"x":1.0}');
      assert.equal(await store.change('change', 12_345_678, () => undefined), undefined);
    });

    test('of changes that meet, one wins', async () => {
      const job = await submit('race');
      await takeAll('race');
      const outcomes = await Promise.all([
        ...Array.from({ length: 5 }, (_, n) =>
          store.change('race', job.seq, (current) =>
            transitions.finish(current, { workerId: 'w1' }, { output: String(n), error: null }, NOW),
          ),
        ),
        store.change('race', job.seq, (current) => transitions.cancel(current, NOW)),
      ]);
      assert.equal(outcomes.filter((outcome) => outcome?.changed === true).length, 1);
      const counts = await store.counts('race');
      assert.deepEqual([counts.inQueue, counts.inProgress], [0, 0]);
    });

    test('an idempotency key leads to the job that has it', async () => {
      const first = await store.submit(made('idem'), { key: 'k', bodyHash: 'a' });
      const again = await store.submit(made('idem'), { key: 'k', bodyHash: 'b' });
      assert.equal(first.created, true);
      assert.deepEqual([again.created, again.job.seq, again.bodyHash], [false, first.job.seq, 'a']);
      const both = await Promise.all([
        store.submit(made('idem'), { key: 'm', bodyHash: 'x' }),
        store.submit(made('idem'), { key: 'm', bodyHash: 'x' }),
      ]);
      assert.equal(both[0].job.seq, both[1].job.seq);
      assert.equal((await store.submit(made('elsewhere'), { key: 'k', bodyHash: 'b' })).created, true);
    });

    test('chunks keep their order and their numbers, only while the job is held', async () => {
      const job = await submit('chunks');
      await takeAll('chunks');
      const ifHeld =
        (...texts: string[]) =>
        (current: Job) =>
          transitions.holdsLease(current, { workerId: 'w1' })
            ? texts.map((text) => ({ text, workerNumber: 0 }))
            : undefined;
      assert.equal(
        (await store.appendChunks('chunks', job.seq, ifHeld('{"output":1}', '{"output":2}')))?.number,
        2,
      );
      assert.equal((await store.appendChunks('chunks', job.seq, ifHeld('{"output":3}')))?.number, 3);
      assert.equal(await store.appendChunks('chunks', job.seq, () => undefined), undefined);
      assert.equal(await store.appendChunks('chunks', job.seq + 1, ifHeld('{"output":4}')), undefined);
      assert.deepEqual(await store.listChunks('chunks', job.seq, 1, 1_000), [
        { number: 2, text: '{"output":2}' },
        { number: 3, text: '{"output":3}' },
      ]);
      assert.deepEqual(
        (await store.listChunks('chunks', job.seq, 0, 13)).map((chunk) => chunk.number),
        [1],
      );
      await store.change('chunks', job.seq, (current) =>
        transitions.loseWorker(current, { workerId: 'w1' }, 'gone', NOW),
      );
      assert.deepEqual(await store.listChunks('chunks', job.seq, 0, 1_000), []);
    });

    test('the last chunk of a stream has its position, in own numbers and in those of the worker', async () => {
      const job = await submit('numbers');
      await takeAll('numbers');
      const ends: ChunkPosition[] = [];
      const add = (...workerNumbers: number[]): Promise<ChunkPosition | undefined> =>
        store.appendChunks('numbers', job.seq, (_job, end) => {
          ends.push(end);
          return workerNumbers.map((workerNumber) => ({ text: `"${workerNumber}"`, workerNumber }));
        });
      assert.deepEqual(await add(), { number: 0, workerNumber: 0 });
      assert.deepEqual(await add(1, 2, 2, 2), { number: 4, workerNumber: 2 });
      assert.deepEqual(await add(), { number: 4, workerNumber: 2 });
      // Those that come at once come one after the other.
      await Promise.all(
        Array.from({ length: 8 }, () =>
          store.appendChunks('numbers', job.seq, (_job, end) => [
            { text: 'one', workerNumber: end.workerNumber + 1 },
          ]),
        ),
      );
      assert.deepEqual(await add(2 ** 31 - 1), { number: 13, workerNumber: 2 ** 31 - 1 });
      assert.deepEqual(ends, [
        { number: 0, workerNumber: 0 },
        { number: 0, workerNumber: 0 },
        { number: 4, workerNumber: 2 },
        { number: 12, workerNumber: 10 },
      ]);
      await store.change('numbers', job.seq, (current) =>
        transitions.returnToQueue(current, { workerId: 'w1' }, NOW),
      );
      await takeAll('numbers');
      assert.deepEqual(await add(), { number: 0, workerNumber: 0 });
    });

    test('counts follow every move', async () => {
      const jobs = [await submit('counts'), await submit('counts'), await submit('counts')];
      await takeAll('counts', 2);
      assert.deepEqual(await store.counts('counts'), {
        inQueue: 1,
        inProgress: 2,
        completed: 0,
        failed: 0,
        retried: 0,
      });
      await store.change('counts', jobs[0]?.seq ?? 0, (job) =>
        transitions.loseWorker(job, { workerId: 'w1' }, 'gone', NOW),
      );
      await store.change('counts', jobs[1]?.seq ?? 0, (job) =>
        transitions.finish(job, { workerId: 'w1' }, { output: null, error: '"no"' }, NOW),
      );
      assert.deepEqual(await store.counts('counts'), {
        inQueue: 2,
        inProgress: 0,
        completed: 0,
        failed: 1,
        retried: 1,
      });
    });

    test('running jobs and what is ahead', async () => {
      const jobs = [await submit('list'), await submit('list'), await submit('list', { lowPriority: true })];
      assert.equal(await store.countAhead(jobs[2] as Job, 100), 2);
      assert.equal(await store.countAhead(jobs[2] as Job, 1), 1);
      assert.deepEqual(await store.countWaiting('list', NOW - 1, 100), { waiting: 2, late: 0 });
      assert.deepEqual(await store.countWaiting('list', NOW, 100), { waiting: 2, late: 2 });
      assert.deepEqual(await store.countWaiting('list', NOW, 1), { waiting: 1, late: 1 });
      await takeAll('list', 1);
      assert.deepEqual(
        (await store.listRunning('list')).map((job) => job.seq),
        [jobs[0]?.seq],
      );
      assert.ok((await store.listRunning()).length >= 1);
    });

    test('workers are noted and found while they are fresh', async () => {
      await store.saveHeartbeats([
        { endpointId: 'w', workerId: 'a', seenAt: 100, busy: 1, unhealthy: null, accelerated: false },
        { endpointId: 'w', workerId: 'b', seenAt: 200, busy: 0, unhealthy: 'memory', accelerated: false },
      ]);
      await store.saveHeartbeats([
        { endpointId: 'w', workerId: 'a', seenAt: 300, busy: 0, unhealthy: null, accelerated: false },
      ]);
      assert.deepEqual(
        (await store.workers('w', 250)).map(({ workerId, busy }) => [workerId, busy]),
        [['a', 0]],
      );
      assert.equal((await store.workers('w', 0)).length, 2);
    });

    test('removing an endpoint leaves nothing of it', async () => {
      const job = await submit('gone');
      await store.removeEndpoint('gone');
      assert.equal(await store.find('gone', job.seq), undefined);
      assert.deepEqual(await store.counts('gone'), {
        inQueue: 0,
        inProgress: 0,
        completed: 0,
        failed: 0,
        retried: 0,
      });
    });
  });
}
