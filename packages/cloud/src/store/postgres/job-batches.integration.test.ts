import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createMigratedDatabase } from '../../../../testing/src/migrated-database.ts';
import type { MigratedDatabase } from '../../../../testing/src/migrated-database.ts';
import * as transitions from '../../domain/job-transitions.ts';
import type { Job, JobChange, JobStatus, JobWithPayloads, TakenJob } from '../../domain/job-records.ts';
import type { JobStore } from '../job-store.ts';
import { made, newPosition, NOW, numbersOf, random, submitAll, take } from './job-batches.fixture.ts';

/**
 * Jobs that come together share one row, and on PostgreSQL those that go together too. Whoever asks for one
 * of them must not notice.
 */
describe('jobs that wait and are held together', () => {
  let shared: MigratedDatabase;
  let servers: JobStore[];
  let store: JobStore;

  before(async () => {
    shared = await createMigratedDatabase('postgres');
    servers = [shared.database.jobs(), shared.database.jobs()];
    [store] = servers as [JobStore];
  });
  after(() => shared.drop());

  const other = (): JobStore => servers[1] as JobStore;
  const finish =
    ({ job }: Pick<TakenJob, 'job'>): ((current: Job) => JobChange | undefined) =>
    (current) =>
      transitions.finish(
        current,
        { workerId: 'w', lease: job.lease ?? '' },
        { output: '"done"', error: null },
        NOW + 20,
      );
  const finishAll = async (
    of: JobStore,
    endpointId: string,
    taken: readonly TakenJob[],
  ): Promise<boolean[]> =>
    (await of.changeAll(taken.map((one) => ({ endpointId, seq: one.job.seq, next: finish(one) })))).map(
      (done) => done?.changed === true,
    );
  const statusOf = async (of: JobStore, endpointId: string, seq: number): Promise<JobStatus | undefined> =>
    (await of.find(endpointId, seq))?.job.status;

  test('accounts that share an endpoint take turns, normal before low priority, each oldest first', async () => {
    const of = (accountId: string, count: number, lowPriority = false): JobWithPayloads[] =>
      Array.from({ length: count }, () => made('turns', { lowPriority }, accountId));
    const [one, two, three, low] = [of('one', 20), of('two', 3), of('three', 20), of('one', 20, true)];
    await submitAll(store, [...low, ...one, ...two, ...three]);
    const ofEach = (taken: readonly TakenJob[]): number[] =>
      ['one', 'two', 'three'].map((account) => taken.filter(({ job }) => job.accountId === account).length);
    const [first, second, third, fourth] = [
      await take(store, 'turns', 9),
      await take(store, 'turns', 10),
      await take(store, 'turns', 30),
      await take(store, 'turns', 30),
    ];
    assert.deepEqual([first, second, third, fourth].map(ofEach), [
      [3, 3, 3],
      [5, 0, 5],
      [18, 0, 12],
      [14, 0, 0],
    ]);
    const all = [...first, ...second, ...third, ...fourth];
    for (const line of [one, two, three, low])
      assert.deepEqual(
        numbersOf(all).filter((seq) => line.some(({ job }) => job.seq === seq)),
        line.map(({ job }) => job.seq),
      );
    assert.equal(
      all.findIndex(({ job }) => job.lowPriority),
      43,
    );
  });

  test('each is given out once, however many workers take at the same time', async () => {
    const jobs = Array.from({ length: 600 }, () => made('once'));
    await submitAll(store, jobs.slice(0, 300));
    const taken: TakenJob[] = [];
    const pendingTake = async (of: JobStore): Promise<void> => {
      while (taken.length < jobs.length) taken.push(...(await take(of, 'once', 1 + random(40))));
    };
    await Promise.all([
      pendingTake(store),
      pendingTake(store),
      pendingTake(other()),
      pendingTake(other()),
      submitAll(other(), jobs.slice(300)),
    ]);
    assert.deepEqual(
      numbersOf(taken).sort((one, two) => one - two),
      jobs.map(({ job }) => job.seq),
    );
    const ended = await Promise.all([
      finishAll(store, 'once', taken.slice(0, 450)),
      finishAll(other(), 'once', taken.slice(400)),
    ]);
    assert.equal(ended.flat().filter((done) => done).length, 600);
    assert.deepEqual(await store.counts('once'), {
      inQueue: 0,
      inProgress: 0,
      completed: 600,
      failed: 0,
      retried: 0,
    });
  });

  test('a job of a batch that is taken and cancelled at once is one of the two, never both', async () => {
    const jobs = Array.from({ length: 300 }, () => made('leaving'));
    await submitAll(store, jobs);
    const cancelled: number[] = [];
    const taken: TakenJob[] = [];
    const cancel = async (seq: number): Promise<void> => {
      const done = await other().change('leaving', seq, (job) =>
        job.status === 'IN_QUEUE' ? transitions.cancel(job, NOW + 10) : undefined,
      );
      if (done?.changed === true) cancelled.push(seq);
    };
    const takeSome = async (): Promise<void> => {
      for (let round = 0; round < 30; round += 1)
        taken.push(...(await take(store, 'leaving', 1 + random(15))));
    };
    await Promise.all([takeSome(), ...jobs.filter(() => random(3) === 0).map(({ job }) => cancel(job.seq))]);
    taken.push(...(await take(store, 'leaving', 300)), ...(await take(store, 'leaving', 300)));
    assert.deepEqual(
      [...cancelled, ...numbersOf(taken)].sort((one, two) => one - two),
      jobs.map(({ job }) => job.seq),
    );
    assert.deepEqual(await store.counts('leaving'), {
      inQueue: 0,
      inProgress: taken.length,
      completed: 0,
      failed: 0,
      retried: 0,
    });
  });

  test('another server sees, ends and cancels the jobs of a batch; the rest ends as usual', async () => {
    const jobs = Array.from({ length: 30 }, () => made('elsewhere'));
    await submitAll(store, jobs);
    const taken = await take(store, 'elsewhere', 30);
    const [first, second, third] = taken as [TakenJob, TakenJob, TakenJob];
    assert.deepEqual((await other().find('elsewhere', first.job.seq))?.job, first.job);
    assert.deepEqual(await finishAll(other(), 'elsewhere', [first, second]), [true, true]);
    await other().change('elsewhere', third.job.seq, (job) => transitions.cancel(job, NOW + 10));
    assert.deepEqual(
      await finishAll(store, 'elsewhere', taken),
      taken.map((_, index) => index > 2),
    );
    assert.deepEqual(await store.counts('elsewhere'), {
      inQueue: 0,
      inProgress: 0,
      completed: 29,
      failed: 0,
      retried: 0,
    });
  });

  test('results too large for one statement are kept, and the batch is removed with the last of them', async () => {
    await submitAll(
      store,
      Array.from({ length: 24 }, () => made('large')),
    );
    const taken = await take(store, 'large', 24);
    const output = (seq: number): string => JSON.stringify(`${seq} ${'x'.repeat(500_000)}`);
    const done = await store.changeAll(
      taken.map(({ job }) => ({
        endpointId: 'large',
        seq: job.seq,
        next: (current) =>
          transitions.finish(
            current,
            { workerId: 'w', lease: job.lease ?? '' },
            { output: output(job.seq), error: null },
            NOW + 20,
          ),
      })),
    );
    assert.ok(done.every((one) => one?.changed === true));
    for (const { job } of taken)
      assert.equal((await other().find('large', job.seq))?.payloads.output, output(job.seq));
    assert.deepEqual(await store.counts('large'), {
      inQueue: 0,
      inProgress: 0,
      completed: 24,
      failed: 0,
      retried: 0,
    });
    assert.deepEqual(await other().listRunning('large'), []);
  });

  test('a retried job waits, whatever happens to the others of its batch', async () => {
    await submitAll(
      store,
      Array.from({ length: 10 }, () => made('sent back')),
    );
    const taken = await take(store, 'sent back', 10);
    const { seq } = (taken[3] as TakenJob).job;
    await store.change('sent back', seq, (job) =>
      transitions.finish(job, { workerId: 'w' }, { output: null, error: '"failed"' }, NOW + 10),
    );
    await store.change('sent back', seq, (job) => transitions.retry(job, newPosition(), NOW + 20));
    assert.equal((await store.listRunning('sent back')).length, 9);
    assert.equal(await statusOf(store, 'sent back', seq), 'IN_QUEUE');
    assert.deepEqual(numbersOf(await take(store, 'sent back', 10)), [seq]);
  });

  test('ends that race with reads are stored, each once', async () => {
    for (let round = 0; round < 20; round += 1) {
      const jobs = Array.from({ length: 20 }, () => made('looked at'));
      await submitAll(store, jobs);
      const taken = await take(store, 'looked at', 20);
      const [ended] = await Promise.all([
        finishAll(store, 'looked at', taken),
        ...taken.map(({ job }) => other().find('looked at', job.seq)),
        other().listRunning('looked at'),
      ]);
      assert.ok(ended.every((done) => done));
      assert.deepEqual(
        new Set(await Promise.all(taken.map(({ job }) => statusOf(other(), 'looked at', job.seq)))),
        new Set(['COMPLETED']),
      );
      assert.deepEqual(await store.listRunning('looked at'), []);
    }
    assert.equal((await store.counts('looked at')).completed, 400);
  });

  test('a job that has not ended is found by its own deadline when that of its batch is due', async () => {
    const jobs = [
      made('limits', { executionTimeout: 5_000 }),
      ...Array.from({ length: 10 }, () => made('limits')),
    ];
    await submitAll(store, jobs);
    const taken = await take(store, 'limits', 20);
    const due = async (now: number): Promise<number[]> =>
      (await other().listDue(now, 100_000))
        .filter(({ endpointId }) => endpointId === 'limits')
        .map(({ seq }) => seq);
    assert.deepEqual(await due(NOW + 5_004), []);
    assert.deepEqual(await due(NOW + 5_005), [jobs[0]?.job.seq]);
    await finishAll(store, 'limits', taken.slice(2));
    assert.deepEqual(await due(NOW + 10_005), numbersOf(taken.slice(0, 2)));
  });

  test('a number that another server also used does not affect other jobs', async () => {
    const [one, two, three] = [made('numbers'), made('numbers'), made('numbers')];
    await other().submit({ ...two, job: { ...two.job, id: 'another' } });
    const created = (await Promise.all([one, two, three].map((job) => store.submit(job)))).map(
      (done) => done.created,
    );
    assert.deepEqual(created, [true, false, true]);
    assert.deepEqual(
      numbersOf(await take(store, 'numbers', 10)),
      [one, two, three].map(({ job }) => job.seq),
    );
  });

  test('large requests with any characters are stored unchanged, and so are webhooks', async () => {
    const requests = [
      '{"input":"\\u001e\\u001f \\"\\\\ {1,2}"}',
      '{\n\t"input": null}\r\n',
      `{"input":"${'ä€😀'.repeat(2_000)}"}`,
      '{"input":{"n":1.0,"big":9007199254740993}}',
    ];
    const webhook = 'https://example.com/a%20b?c=d"\\\u001e1 id another\u001f';
    await submitAll(
      store,
      requests.map((request) => made('letters', { webhook }, 'one', request)),
    );
    const taken = await take(store, 'letters', 10);
    assert.deepEqual(
      taken.map(({ request, job }) => [request, job.webhook, job.accountId]),
      requests.map((request) => [request, webhook, 'one']),
    );
  });
});
