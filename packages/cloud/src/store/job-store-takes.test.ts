import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { DATABASES } from '../../../testing/src/test-database.ts';
import * as transitions from '../domain/job-transitions.ts';
import { JobStoreFixture } from './job-store.fixture.ts';
import { NOW } from './queue-settings.fixture.ts';
import type { JobStore } from './job-store.ts';

for (const kind of DATABASES) {
  describe(`takes from the job store on ${kind}`, () => {
    const fixture = new JobStoreFixture(kind);
    const { made, submit, submitElsewhere, takeAll } = fixture;
    let store: JobStore;

    before(async () => {
      store = await fixture.open();
    });
    after(fixture.close);

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

    test('concurrent takes never get the same job', async () => {
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
  });
}
