import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { DATABASES } from '../packages/testing/src/test-database.ts';
import {
  createQueueEndpoint,
  WAKEUP_LIMIT_MS,
  measureTime,
} from '../packages/testing/src/queue-endpoint-client.ts';
import type { QueueEndpointClient } from '../packages/testing/src/queue-endpoint-client.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';
import { openChannelOrFail, flushChannel } from '../packages/testing/src/protocol-workers.ts';
import type { ChannelWorker } from '../packages/testing/src/protocol-workers.ts';
import { waitUntilPasses } from '../packages/testing/src/wait-for.ts';

for (const kind of DATABASES) {
  describe(`jobs and their leases on the worker channel, on ${kind}`, { concurrency: true }, () => {
    const fixture = serverFixture(kind, { BERTH_RATE_LIMITS: 'off' });
    let ann: TestAccount;
    before(async () => {
      ann = await fixture.createAccount('ann');
    });
    const endpoint = (settings: Record<string, unknown> = {}): Promise<QueueEndpointClient> =>
      createQueueEndpoint(fixture.server.url, ann.key, settings);
    const open = (jobs: QueueEndpointClient, workerId = 'w'): Promise<ChannelWorker> =>
      openChannelOrFail({ url: fixture.server.url, endpointId: jobs.id, workerId, key: ann.key });

    test('jobs come as long as there are credits, with a lease each, and results are acknowledged', async () => {
      const jobs = await endpoint();
      const channel = await open(jobs, 'w-1');
      channel.send('T 2');
      const ids = [
        await jobs.run({ n: 1 }, { extra: [1.5] }),
        await jobs.run({ n: 2 }),
        await jobs.run({ n: 3 }),
      ];
      const [first, second] = [await channel.job(), await channel.job()];
      assert.deepEqual(
        [first.job, second.job],
        [
          { id: ids[0], input: { n: 1 }, extra: [1.5] },
          { id: ids[1], input: { n: 2 } },
        ],
      );
      assert.notEqual(first.lease, second.lease);
      assert.equal((await jobs.status(ids[0] ?? '')).workerId, 'w-1');
      await flushChannel(channel);
      assert.deepEqual(channel.unread('J'), [], 'the credits are used up');
      channel.send(`D ${ids[0]} ${first.lease} {"output":{"float":1.0,"big":1152921504606846976}}`);
      assert.equal(await channel.next('A'), `${ids[0]} ${first.lease}`);
      const done = await jobs.call('GET', `status/${ids[0]}`);
      assert.equal(done.body.status, 'COMPLETED');
      assert.ok(done.text.includes('{"float":1.0,"big":1152921504606846976}'));
      channel.send(`D ${ids[1]} ${second.lease} {"error":"no","output":[1]}`);
      assert.deepEqual(
        [(await jobs.waitForEnd(ids[1] ?? '')).status, (await jobs.status(ids[1] ?? '')).error],
        ['FAILED', 'no'],
      );
      channel.send('T 1');
      assert.equal((await channel.job()).job.id, ids[2]);
      channel.close();
    });

    test('credits add up', async () => {
      const jobs = await endpoint();
      const channel = await open(jobs);
      channel.send('T 1', 'T 2', 'T 0', 'T -5', 'T nonsense');
      for (let n = 0; n < 5; n += 1) await jobs.run({ n });
      for (let n = 0; n < 3; n += 1) assert.deepEqual((await channel.job()).job.input, { n });
      await flushChannel(channel);
      assert.deepEqual(channel.unread('J'), []);
      assert.equal((await jobs.health()).jobs.inQueue, 2);
      channel.close();
    });

    test('credits that are void bring nothing, and later ones do', async () => {
      const jobs = await endpoint();
      const channel = await open(jobs);
      channel.send('T 5', 'N');
      await flushChannel(channel);
      const id = await jobs.run({});
      await flushChannel(channel);
      // A take that was on its way may have it for a moment.
      await waitUntilPasses(async () => assert.equal((await jobs.health()).jobs.inQueue, 1));
      assert.deepEqual(channel.unread('J'), []);
      channel.send('T 1');
      assert.equal((await channel.job()).job.id, id);
      channel.close();
    });

    test('an unstarted job is returned as if never taken, to the head of the queue', async () => {
      const jobs = await endpoint();
      const channel = await open(jobs);
      const [id, next] = [await jobs.run({ n: 1 }), await jobs.run({ n: 2 })];
      channel.send('T 1');
      const first = await channel.job();
      channel.send(`B ${id} ${first.lease}`);
      assert.equal(await channel.next('A'), `${id} ${first.lease}`);
      assert.deepEqual(
        [(await jobs.status(id)).status, (await jobs.status(id)).retries ?? 0],
        ['IN_QUEUE', 0],
      );
      // Said twice, or by whoever does not hold it, it changes nothing.
      channel.send('T 2');
      const again = await channel.job();
      assert.equal(again.job.id, id);
      channel.send(`B ${id} ${first.lease}`, 'B nonsense x');
      assert.deepEqual(
        new Set([await channel.next('A'), await channel.next('A')]),
        new Set([`${id} ${first.lease}`, 'nonsense x']),
      );
      channel.send(`D ${id} ${again.lease} {"output":1}`);
      assert.equal((await jobs.waitForEnd(id)).status, 'COMPLETED');
      assert.equal((await channel.job()).job.id, next);
      channel.close();
    });

    test('the time that a job waits in its worker is delay, not execution', async () => {
      const jobs = await endpoint();
      const channel = await open(jobs);
      const ids = [await jobs.run({}), await jobs.run({})];
      channel.send('T 2');
      const [one, other] = [await channel.job(), await channel.job()];
      // However much a worker says, a job begins before it ends.
      channel.send(
        `D ${one.job.id} ${one.lease}~3600000 {"output":1}`,
        `D ${other.job.id} ${other.lease}~x {"output":2}`,
      );
      assert.deepEqual(
        [await channel.next('A'), await channel.next('A')],
        [`${one.job.id} ${one.lease}`, `${other.job.id} ${other.lease}`],
      );
      const shown = await Promise.all(ids.map((id) => jobs.status(id)));
      assert.deepEqual(
        shown.map(({ status }) => status),
        ['COMPLETED', 'COMPLETED'],
      );
      assert.equal(shown[0]?.executionTime, 0);
      channel.close();
    });

    test('a synchronous call goes through in one round', async () => {
      const jobs = await endpoint();
      const channel = await open(jobs);
      channel.send('T 100');
      const answering = (async () => {
        for (let n = 0; n < 50; n += 1) {
          const { lease, job } = await channel.job();
          channel.send(`D ${job.id} ${lease} ${JSON.stringify({ output: job.input })}`);
        }
      })();
      const answers = await Promise.all(Array.from({ length: 50 }, (_, n) => jobs.runSync({ n })));
      await answering;
      assert.deepEqual(
        answers.map(({ body }) => [body.status, body.output]),
        Array.from({ length: 50 }, (_, n) => ['COMPLETED', { n }]),
      );
      channel.close();
    });

    test('chunks, progress and the result of a job keep their order', async () => {
      const jobs = await endpoint();
      const channel = await open(jobs);
      const id = await jobs.run();
      channel.send('T 1');
      const { lease } = await channel.job();
      channel.send(`P ${id} ${lease} {"percent":NaN}`, `P ${id} ${lease} {"percent":50}`);
      await waitUntilPasses(async () => assert.deepEqual((await jobs.status(id)).output, { percent: 50 }));
      const all = Array.from({ length: 300 }, (_, n) => n);
      channel.send(
        ...all.map((n) => `S ${id} ${lease} {"output":${n}}`),
        `P ${id} ${lease} 99`,
        `D ${id} ${lease} {"output":"end"}`,
        `S ${id} ${lease} {"output":"late"}`,
        `P ${id} ${lease} "late"`,
      );
      await channel.next('A');
      await flushChannel(channel);
      assert.deepEqual(
        (await jobs.call('GET', `stream/${id}`)).body,
        all.map((output) => ({ output })),
      );
      assert.equal((await jobs.status(id)).output, 'end');
      channel.close();
    });

    test('a wrong lease is acknowledged and changes nothing', async () => {
      const jobs = await endpoint();
      const [channel, other] = [await open(jobs, 'w-1'), await open(jobs, 'w-2')];
      const id = await jobs.run();
      channel.send('T 1');
      const { lease } = await channel.job();
      channel.send(
        `S ${id} wrong {"output":"wrong"}`,
        `P ${id} wrong "wrong"`,
        `D ${id} wrong {"output":"wrong"}`,
      );
      other.send(
        `S ${id} ${lease} {"output":"stolen"}`,
        `P ${id} ${lease} "stolen"`,
        `D ${id} ${lease} {"output":"stolen"}`,
        'D unknown x {}',
      );
      assert.equal(await channel.next('A'), `${id} wrong`);
      assert.deepEqual(
        new Set([await other.next('A'), await other.next('A')]),
        new Set([`${id} ${lease}`, 'unknown x']),
      );
      assert.deepEqual(
        [(await jobs.status(id)).status, (await jobs.status(id)).output],
        ['IN_PROGRESS', undefined],
      );
      channel.send(`D ${id} ${lease} {"output":"right"}`, `D ${id} ${lease} {"output":"again"}`);
      assert.deepEqual(
        [await channel.next('A'), await channel.next('A')],
        [`${id} ${lease}`, `${id} ${lease}`],
      );
      assert.equal((await jobs.status(id)).output, 'right');
      assert.deepEqual((await jobs.call('GET', `stream/${id}`)).body, [{ output: 'right' }]);
      for (const one of [channel, other]) one.close();
    });

    test('one job after the other that is cancelled is stopped at once', async () => {
      const jobs = await endpoint();
      const channel = await open(jobs);
      channel.send('T 3');
      for (let time = 0; time < 3; time += 1) {
        const id = await jobs.run();
        await channel.job();
        const { took, result } = await measureTime(async () => {
          await jobs.call('POST', `cancel/${id}`);
          for (;;) if ((await channel.next('X')) === id) return id;
        });
        assert.equal(result, id);
        assert.ok(took < 2_000, `told after ${took} ms`);
      }
      channel.close();
    });

    test('a cancellation is sent, and sent again while the worker lists the job', async () => {
      const jobs = await endpoint();
      const channel = await open(jobs);
      const [id, kept] = [await jobs.run(), await jobs.run()];
      channel.send('T 2');
      const { lease } = await channel.job();
      const other = await channel.job();
      const { took } = await measureTime(async () => {
        await jobs.call('POST', `cancel/${id}`);
        assert.equal(await channel.next('X'), id);
      });
      assert.ok(took < WAKEUP_LIMIT_MS, `told after ${took} ms`);
      channel.send(`L ${id},${kept}`);
      assert.equal(await channel.next('X'), id);
      channel.send(`D ${id} ${lease} {"output":"late"}`);
      assert.equal(await channel.next('A'), `${id} ${lease}`);
      assert.equal((await jobs.status(id)).status, 'CANCELLED');
      channel.send(`D ${kept} ${other.lease} {"output":"kept"}`);
      assert.equal((await jobs.waitForEnd(kept)).output, 'kept');
      channel.close();
    });
  });
}
