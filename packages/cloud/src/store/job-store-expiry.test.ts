import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { DATABASES } from '../../../testing/src/test-database.ts';
import type { Delivery } from '../domain/job-records.ts';
import * as transitions from '../domain/job-transitions.ts';
import { JobStoreFixture } from './job-store.fixture.ts';
import { NOW } from './queue-settings.fixture.ts';
import type { JobStore } from './job-store.ts';

for (const kind of DATABASES) {
  describe(`expiry, purges and deliveries in the job store on ${kind}`, () => {
    const fixture = new JobStoreFixture(kind);
    const { submit, takeAll } = fixture;
    let store: JobStore;

    before(async () => {
      store = await fixture.open();
    });
    after(fixture.close);

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

    test('the request of a job, with the credentials in it, goes with the job', async () => {
      const before = (await fixture.countRequests()) ?? assert.fail();
      const [ended, dead] = [
        await submit('ended', { retention: 60_000 }),
        await submit('dead', { ttl: 10_000 }),
      ];
      for (const endpointId of ['purged', 'removed']) await submit(endpointId);
      assert.equal(await fixture.countRequests(), before + 4);
      await takeAll('ended');
      await store.change('ended', ended.seq, (job) =>
        transitions.finish(job, { workerId: 'w1' }, { output: '1', error: null }, NOW),
      );
      await store.deleteExpired(NOW + 200_000, 1_000);
      assert.equal(await store.find('ended', ended.seq), undefined);
      assert.equal(await fixture.countRequests(), before + 3);
      await store.change('dead', dead.seq, (job) => transitions.onDue(job, NOW + 10_000, true));
      assert.equal(await fixture.countRequests(), before + 2);
      assert.equal(await store.purge('purged'), 1);
      assert.equal(await fixture.countRequests(), before + 1);
      await store.removeEndpoint('removed');
      assert.equal(await fixture.countRequests(), before);
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

    test('ended jobs past their retention are deleted with their chunks, in batches, and no others', async () => {
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

    test('an end with a webhook creates its delivery in the same transaction', async () => {
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
  });
}
