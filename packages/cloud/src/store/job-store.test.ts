import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { DATABASES } from '../../../testing/src/test-database.ts';
import { createMigratedDatabase } from '../../../testing/src/migrated-database.ts';
import type { MigratedDatabase } from '../../../testing/src/migrated-database.ts';
import { newJob } from '../queue/job-submission.ts';
import type { EndpointQueueSettings, JobOptions } from '../queue/job-submission.ts';
import * as transitions from '../domain/job-transitions.ts';
import type { Delivery, Job, JobWithPayloads, ChunkPosition } from '../domain/job-records.ts';
import type { JobStore, JobListQuery } from './job-store.ts';

const NOW = 1_800_000_000_000;

for (const kind of DATABASES) {
  describe(`job store on ${kind}`, () => {
    let place: MigratedDatabase;
    let store: JobStore;
    let number = 0;
    let leases = 0;

    before(async () => {
      place = await createMigratedDatabase(kind);
      store = place.database.jobs();
    });
    after(() => place.drop());

    const endpoint = (id: string): EndpointQueueSettings => ({
      id,
      accountId: 'one',
      executionTimeout: 600_000,
      jobTtl: 86_400_000,
      retention: null,
      maxRetries: 1,
    });
    const made = (endpointId: string, terms: JobOptions = {}, accountId = 'one'): JobWithPayloads =>
      newJob(
        endpoint(endpointId),
        accountId,
        `{"input":{"n":${++number},"big":9007199254740993,"float":1.0}}`,
        terms,
        number,
        NOW,
      );
    const submit = async (endpointId: string, terms: JobOptions = {}, accountId = 'one'): Promise<Job> =>
      (await store.submit(made(endpointId, terms, accountId))).job;
    const takeAll = (endpointId: string, wanted = 100, worker = 'w1'): ReturnType<JobStore['take']> =>
      store.take(
        endpointId,
        transitions.takeRequest(
          () => Array.from({ length: wanted }, () => ({ workerId: worker, lease: `lease ${++leases}` })),
          NOW + 5,
        ),
      );

    /** By another server, where there may be one: what this one remembers of the endpoint is stale then. */
    const submitElsewhere = async (endpointId: string, accountId: string): Promise<Job> =>
      (await (kind === 'postgres' ? place.database.jobs() : store).submit(made(endpointId, {}, accountId)))
        .job;

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
          await jobs.submit(newJob(endpoint(endpointId), 'one', '{"input":1}', {}, seq, NOW));
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

    test('a job that has ended is forgotten when its retention is over, however long it ran', async () => {
      const job = await submit('retained', { retention: 60_000 });
      await takeAll('retained');
      const ended = NOW + 100_000;
      await store.change('retained', job.seq, (current) =>
        transitions.finish(current, { workerId: 'w1' }, { output: '1', error: null }, ended),
      );
      const isGoneBy = async (now: number): Promise<boolean> => {
        await store.listDue(now, 1_000);
        await store.deleteExpired(now, 1_000);
        return (await store.find('retained', job.seq)) === undefined;
      };
      assert.equal(await isGoneBy(ended + 59_999), false);
      assert.equal(await isGoneBy(ended + 60_000), true);
    });

    test('webhooks that are due come together only as large as they may be, the longest due first', async () => {
      const delivery = (id: string, body: string, nextAt: number): Delivery => ({
        id,
        endpointId: 'sizes',
        accountId: 'one',
        jobId: 'j',
        url: 'https://example.com',
        body,
        attempts: 0,
        nextAt,
        state: 'pending',
        lastStatus: null,
        lastError: null,
        createdAt: NOW,
        updatedAt: NOW,
      });
      for (const [id, length, at] of [
        ['second', 600, 2],
        ['first', 600, 1],
        ['third', 300, 3],
      ] as const)
        await store.saveDelivery(delivery(id, 'x'.repeat(length), at));
      const ids = async (bytes: number): Promise<string[]> =>
        (await store.listDueDeliveries(NOW - 1, 10, bytes)).map(({ id }) => id);
      assert.deepEqual(
        [await ids(10), await ids(1_200), await ids(10_000)],
        [['first'], ['first', 'second'], ['first', 'second', 'third']],
      );
      await store.removeEndpoint('sizes');
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

    test('jobs go out oldest first, low priority last, and each once', async () => {
      const low = await submit('order', { lowPriority: true });
      const first = await submit('order');
      const second = await submit('order');
      const taken = await takeAll('order', 2);
      assert.deepEqual(
        taken.map(({ job }) => job.seq),
        [first.seq, second.seq],
      );
      assert.deepEqual(
        (await takeAll('order')).map(({ job }) => job.seq),
        [low.seq],
      );
      assert.deepEqual(await takeAll('order'), []);
      assert.match(taken[0]?.request ?? '', /9007199254740993,"float":1\.0/);
      assert.equal((await store.find('order', first.seq))?.job.workerId, 'w1');
    });

    test('what a take answers is what is kept, whichever limit ends the lease first', async () => {
      const plain = await submit('leases');
      const quick = await submit('leases', { executionTimeout: 5_000 });
      const brief = await submit('leases', { ttl: 10_000 });
      await store.change('leases', plain.seq, (job) => transitions.setTimeToLive(job, 70_000, NOW + 1));
      const taken = await takeAll('leases');
      assert.deepEqual(
        taken.map(({ job }) => job.dueAt),
        [NOW + 10_005, NOW + 5_005, NOW + 10_000],
      );
      for (const { job } of taken) assert.deepEqual((await store.find('leases', job.seq))?.job, job);
      assert.deepEqual(
        [taken[0]?.job.ttlAt, brief.seq, quick.seq],
        [NOW + 70_001, taken[2]?.job.seq, taken[1]?.job.seq],
      );
    });

    test('a job that comes in while a worker waits goes straight to it', async () => {
      assert.deepEqual(await takeAll('straight'), []);
      const [one, two, three] = [
        made('straight', { executionTimeout: 5_000 }),
        made('straight'),
        made('straight'),
      ];
      assert.equal(store.sameTurnTakes, kind === 'sqlite');
      const submitting = Promise.all([one, two, three].map((whole) => store.submit(whole)));
      if (!store.sameTurnTakes) await submitting;
      const [submitted, taken] = await Promise.all([submitting, takeAll('straight', 2)]);
      assert.deepEqual(
        taken.map(({ job, request }) => [job.seq, request]),
        [one, two].map(({ job, payloads }) => [job.seq, payloads.request]),
      );
      assert.deepEqual(
        submitted.map(({ created }) => created),
        [true, true, true],
      );
      for (const { job } of taken) assert.deepEqual((await store.find('straight', job.seq))?.job, job);
      const { inQueue, inProgress } = await store.counts('straight');
      assert.deepEqual([inQueue, inProgress], [1, 2]);
      const [first] = taken;
      const ended = await store.change('straight', one.job.seq, (job) =>
        transitions.finish(
          job,
          { workerId: 'w1', lease: first?.job.lease ?? '' },
          { output: '1', error: null },
          NOW + 20,
        ),
      );
      assert.equal(ended?.after.status, 'COMPLETED');
      assert.deepEqual(
        (await takeAll('straight')).map(({ job }) => job.seq),
        [three.job.seq],
      );
    });

    test('a job that comes in where others wait, or with jobs of another account, waits for its turn', async () => {
      for (const [endpointId, accountId] of [
        ['behind', 'one'],
        ['beside', 'another'],
      ] as const) {
        assert.deepEqual(await takeAll(endpointId), []);
        const before = await submitElsewhere(endpointId, accountId);
        const next = made(endpointId);
        const [, taken] = await Promise.all([store.submit(next), takeAll(endpointId, 1)]);
        assert.deepEqual(
          taken.map(({ job }) => job.seq),
          [before.seq],
        );
        assert.deepEqual(
          (await takeAll(endpointId)).map(({ job }) => job.seq),
          [next.job.seq],
        );
      }
    });

    test('takers that meet never get the same job', async () => {
      for (let n = 0; n < 60; n += 1) await submit('meet');
      const rounds = await Promise.all(
        Array.from({ length: 12 }, (_, worker) => takeAll('meet', 7, `w${worker}`)),
      );
      const seqs = rounds.flat().map(({ job }) => job.seq);
      assert.equal(new Set(seqs).size, seqs.length);
      const rest = await takeAll('meet', 100);
      assert.equal(seqs.length + rest.length, 60);
    });

    test('accounts that share an endpoint take turns also where jobs go out one at a time', async () => {
      for (const accountId of ['a', 'a', 'a', 'a', 'b', 'b', 'c']) await submit('one by one', {}, accountId);
      const served: string[] = [];
      for (let count = 0; count < 7; count += 1)
        served.push((await takeAll('one by one', 1))[0]?.job.accountId ?? '');
      assert.equal(served.join(''), 'abcabaa');
      for (const accountId of ['a', 'a', 'a', 'b', 'b', 'b']) await submit('by three', {}, accountId);
      const count = async (): Promise<string> =>
        (await takeAll('by three', 3))
          .map(({ job }) => job.accountId)
          .toSorted()
          .join('');
      assert.deepEqual([await count(), await count()], ['aab', 'abb']);
    });

    test('accounts that share an endpoint take turns', async () => {
      for (let n = 0; n < 10; n += 1) await submit('shared', {}, 'many');
      await submit('shared', {}, 'few');
      await submit('shared', {}, 'few');
      const taken = await takeAll('shared', 4);
      assert.deepEqual(taken.map(({ job }) => job.accountId).sort(), ['few', 'few', 'many', 'many']);
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

    test('a stream tells by its last chunk how far it is, in its own numbers and in those of the worker', async () => {
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

    test('what is due is found, the longest due first', async () => {
      const soon = await submit('due', { ttl: 10_000 });
      const later = await submit('due', { ttl: 20_000 });
      assert.deepEqual(
        (await store.listDue(NOW + 9_999, 10)).filter((job) => job.endpointId === 'due'),
        [],
      );
      assert.deepEqual(
        (await store.listDue(NOW + 30_000, 1_000))
          .filter((job) => job.endpointId === 'due')
          .map((job) => job.seq),
        [soon.seq, later.seq],
      );
      const gone = await store.change('due', soon.seq, (current) =>
        transitions.onDue(current, NOW + 10_000, true),
      );
      assert.equal(gone?.after.status, 'TIMED_OUT');
      assert.equal(await store.find('due', soon.seq), undefined);
      assert.deepEqual(await store.counts('due'), {
        inQueue: 1,
        inProgress: 0,
        completed: 0,
        failed: 1,
        retried: 0,
      });
    });

    test('what has ended and is over is forgotten with all that it streamed, so many at a time, and nothing else is', async () => {
      // Of jobs of other endpoints, too.
      while ((await store.deleteExpired(NOW + 10_000_000, 1_000)) > 0);
      const [first, second, kept, running, waiting] = [
        await submit('over'),
        await submit('over'),
        await submit('over'),
        await submit('over'),
        await submit('over'),
      ];
      await takeAll('over', 4);
      const end = (seq: number, at: number): Promise<unknown> =>
        store.change('over', seq, (job) =>
          transitions.finish(job, { workerId: 'w1' }, { output: '1', error: null }, at),
        );
      await store.appendChunks('over', first.seq, () => [{ text: '{"output":1}', workerNumber: 0 }]);
      await store.appendChunks('over', running.seq, () => [{ text: '{"output":2}', workerNumber: 0 }]);
      for (const { seq } of [first, second]) await end(seq, NOW + 1_000);
      await end(kept.seq, NOW + 200_000);
      const over = NOW + 1_000 + first.retention;
      const late = over + 70_000;
      const there = async (): Promise<number[]> =>
        (
          await store.findAll(
            'over',
            [first, second, kept, running, waiting].map(({ seq }) => seq),
          )
        )
          .map(({ job }) => job.seq)
          .reverse();
      assert.deepEqual(
        (await store.listDue(late, 1_000)).filter(
          ({ endpointId, status }) => endpointId === 'over' && status === 'COMPLETED',
        ),
        [],
      );
      assert.deepEqual(
        await there(),
        [first, second, kept, running, waiting].map(({ seq }) => seq),
      );
      assert.equal(await store.deleteExpired(late, 1), 1);
      assert.equal(await store.deleteExpired(late, 1), 1);
      assert.equal(await store.deleteExpired(late, 1), 0);
      assert.deepEqual(
        await there(),
        [kept, running, waiting].map(({ seq }) => seq),
      );
      assert.deepEqual(
        [
          await store.listChunks('over', first.seq, 0, 1_000),
          (await store.listChunks('over', running.seq, 0, 1_000)).length,
        ],
        [[], 1],
      );
      assert.deepEqual(await store.counts('over'), {
        inQueue: 1,
        inProgress: 1,
        completed: 3,
        failed: 0,
        retried: 0,
      });
    });

    test('a purge removes what waits and nothing else', async () => {
      const running = await submit('purge');
      await takeAll('purge', 1);
      await submit('purge');
      await submit('purge', { lowPriority: true });
      assert.equal(await store.purge('purge'), 2);
      assert.equal(await store.purge('purge'), 0);
      assert.ok(await store.find('purge', running.seq));
      assert.deepEqual(await store.counts('purge'), {
        inQueue: 0,
        inProgress: 1,
        completed: 0,
        failed: 0,
        retried: 0,
      });
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

    test('a list tells the jobs of an endpoint and their sizes, newest first, by so many rows at a time', async () => {
      const [waiting, held, done, failed, cancelled] = [
        await submit('page'),
        await submit('page'),
        await submit('page'),
        await submit('page'),
        await submit('page'),
      ] as [Job, Job, Job, Job, Job];
      await submit('page elsewhere');
      const taken = await takeAll('page');
      const end = (seq: number, output: string | null, error: string | null): Promise<unknown> =>
        store.change('page', seq, (job) =>
          transitions.finish(job, { workerId: 'w1' }, { output, error }, NOW + 9),
        );
      await store.change('page', waiting.seq, (job) =>
        transitions.loseWorker(job, { workerId: 'w1' }, 'gone', NOW),
      );
      await end(done.seq, '"é"', null);
      await end(failed.seq, null, '"no"');
      await store.change('page', cancelled.seq, (job) => transitions.cancel(job, NOW + 9));
      assert.equal(taken.length, 5);
      const all = [cancelled, failed, done, held, waiting].map(({ seq }) => seq);
      const listed = async (
        look: Partial<JobListQuery> = {},
      ): Promise<{ seqs: number[]; next: number | undefined }> => {
        const { jobs, next } = await store.list('page', { maxRowsScanned: 100, now: NOW + 10, ...look });
        return { seqs: jobs.map(({ seq }) => seq), next };
      };
      assert.deepEqual(await listed(), { seqs: all, next: undefined });
      assert.deepEqual(await listed({ maxRowsScanned: 2 }), { seqs: all.slice(0, 2), next: failed.seq });
      assert.deepEqual(await listed({ maxRowsScanned: 2, before: failed.seq }), {
        seqs: all.slice(2, 4),
        next: held.seq,
      });
      assert.deepEqual(await listed({ maxRowsScanned: 2, before: held.seq }), {
        seqs: [waiting.seq],
        next: undefined,
      });
      // A row counts whatever its status, so a look may find nothing and still not be the last.
      assert.deepEqual(await listed({ maxRowsScanned: 2, status: 'COMPLETED' }), {
        seqs: [],
        next: failed.seq,
      });
      assert.deepEqual(await listed({ maxRowsScanned: 1, status: 'IN_PROGRESS' }), {
        seqs: [held.seq],
        next: held.seq,
      });
      for (const [status, job] of [
        ['IN_QUEUE', waiting],
        ['IN_PROGRESS', held],
        ['COMPLETED', done],
        ['FAILED', failed],
        ['CANCELLED', cancelled],
      ] as const)
        assert.deepEqual((await listed({ status })).seqs, [job.seq], status);
      assert.deepEqual((await listed({ status: 'TIMED_OUT' })).seqs, []);
      assert.deepEqual(
        await listed({ status: 'IN_QUEUE', maxRowsScanned: 2 }),
        { seqs: [waiting.seq], next: undefined },
        'few wait: they are found at once',
      );
      assert.deepEqual(
        await listed({ status: 'IN_QUEUE', maxRowsScanned: 1 }),
        { seqs: [], next: cancelled.seq },
        'many wait: all jobs are gone through',
      );
      assert.deepEqual(await listed({ status: 'IN_QUEUE', maxRowsScanned: 1, before: held.seq }), {
        seqs: [waiting.seq],
        next: waiting.seq,
      });
      assert.deepEqual(
        (await listed({ now: NOW + 365 * 86_400_000 })).seqs,
        [held.seq, waiting.seq],
        'what is over is not there',
      );

      const whole = await store.findAll('page', [waiting.seq, done.seq, 12_345_678, failed.seq]);
      assert.deepEqual(
        whole,
        await Promise.all([failed, done, waiting].map(({ seq }) => store.find('page', seq))),
      );
      assert.deepEqual(await store.findAll('page elsewhere', [done.seq]), []);
      assert.deepEqual(await store.findAll('page', []), []);
      const { jobs: sized } = await store.list('page', { maxRowsScanned: 100, now: NOW + 10 });
      for (const {
        job,
        payloads: { request, output, error },
      } of whole)
        assert.equal(
          sized.find(({ seq }) => seq === job.seq)?.bytes,
          Buffer.byteLength(request + (output ?? '') + (error ?? '')),
        );
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

    test('an end with a webhook makes its delivery in the same move', async () => {
      const job = await submit('hook', { webhook: 'https://example.com/hook' });
      await takeAll('hook');
      const delivery = (request: string): Delivery => ({
        id: 'd1',
        endpointId: 'hook',
        accountId: 'one',
        jobId: job.id,
        url: 'https://example.com/hook',
        body: request,
        attempts: 0,
        nextAt: NOW,
        state: 'pending',
        lastStatus: null,
        lastError: null,
        createdAt: NOW,
        updatedAt: NOW,
      });
      await store.change('hook', job.seq, (current) => {
        const change = transitions.finish(current, { workerId: 'w1' }, { output: '[1]', error: null }, NOW);
        return change === undefined
          ? undefined
          : { ...change, delivery: (payloads) => delivery(JSON.stringify(payloads)) };
      });
      const [due] = await store.listDueDeliveries(NOW, 10, 1);
      assert.equal(due?.id, 'd1');
      assert.deepEqual((JSON.parse(due.body) as { output: string }).output, '[1]');
      await store.saveDelivery({ ...due, attempts: 1, state: 'delivered', nextAt: null, lastStatus: 200 });
      assert.deepEqual(await store.listDueDeliveries(NOW, 10, 1), []);
      assert.equal((await store.findDelivery('hook', 'd1'))?.attempts, 1);
      assert.equal(await store.updateDelivery(due, { ...due, nextAt: NOW + 9 }), false);
      assert.equal(
        await store.updateDelivery({ ...due, nextAt: null }, { ...due, nextAt: NOW + 9 }),
        false,
        'it was tried since',
      );
      assert.equal(
        await store.updateDelivery(
          { ...due, attempts: 1, nextAt: null },
          { ...due, attempts: 2, nextAt: NOW + 9 },
        ),
        true,
      );
      await store.deleteEndedDeliveries(NOW + 1_000_000);
      assert.equal((await store.findDelivery('hook', 'd1'))?.attempts, 2);
      assert.equal((await store.listDeliveries('hook', { jobId: job.id, limit: 5 })).length, 1);
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
