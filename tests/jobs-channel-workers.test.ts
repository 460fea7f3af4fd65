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
  describe(`workers on the worker channel, on ${kind}`, { concurrency: true }, () => {
    const fixture = serverFixture(kind, { BERTH_RATE_LIMITS: 'off' });
    let ann: TestAccount;
    before(async () => {
      ann = await fixture.createAccount('ann');
    });
    const endpoint = (settings: Record<string, unknown> = {}): Promise<QueueEndpointClient> =>
      createQueueEndpoint(fixture.server.url, ann.key, settings);
    const open = (jobs: QueueEndpointClient, workerId = 'w'): Promise<ChannelWorker> =>
      openChannelOrFail({ url: fixture.server.url, endpointId: jobs.id, workerId, key: ann.key });

    test('a worker that returns under its old name gets jobs at once; a name may hold any character', async () => {
      const jobs = await endpoint();
      const name = 'wörker';
      const first = await open(jobs, encodeURIComponent(name));
      first.send('Q');
      await flushChannel(first);
      first.close();
      const again = await open(jobs, encodeURIComponent(name));
      again.send('T 1');
      const id = await jobs.run();
      const { took } = await measureTime(() => again.job());
      assert.ok(took < WAKEUP_LIMIT_MS, `it came after ${took} ms`);
      assert.equal((await jobs.status(id)).workerId, name);
      again.close();
    });

    test('a worker that comes back within ten seconds keeps its jobs, and its lease still counts', async () => {
      const jobs = await endpoint();
      const first = await open(jobs);
      const id = await jobs.run();
      first.send('T 5');
      const { lease } = await first.job();
      first.close();
      await waitUntilPasses(async () => assert.equal((await jobs.health()).jobs.inProgress, 1));
      const second = await open(jobs);
      second.send(`L ${id}`);
      const other = await jobs.run();
      await jobs.call('GET', `status-sync/${id}?wait=12000`);
      assert.equal((await jobs.status(id)).status, 'IN_PROGRESS');
      assert.deepEqual(second.unread('J'), [], 'credits end with their connection');
      second.send(`D ${id} ${lease} {"output":"survived"}`, 'T 1');
      assert.equal(await second.next('A'), `${id} ${lease}`);
      assert.equal((await second.job()).job.id, other);
      assert.deepEqual(
        [(await jobs.status(id)).output, (await jobs.status(id)).retries],
        ['survived', undefined],
      );
      second.close();
    });

    test('the jobs of a worker that does not come back go to another', async () => {
      const jobs = await endpoint();
      const [gone, other] = [await open(jobs, 'gone'), await open(jobs, 'other')];
      const id = await jobs.run();
      gone.send('T 1');
      const { lease } = await gone.job();
      other.send('T 1', 'L ');
      const { took, result } = await measureTime(async () => {
        gone.close();
        return other.job();
      });
      assert.equal(result.job.id, id);
      assert.notEqual(result.lease, lease);
      assert.ok(took >= 9_000 && took < 12_000 + WAKEUP_LIMIT_MS, `went elsewhere after ${took} ms`);
      const back = await open(jobs, 'gone');
      back.send(`D ${id} ${lease} {"output":"stale"}`);
      assert.equal(await back.next('A'), `${id} ${lease}`);
      other.send(`D ${id} ${result.lease} {"output":"fresh"}`);
      await other.next('A');
      assert.deepEqual([(await jobs.status(id)).output, (await jobs.status(id)).retries], ['fresh', 1]);
      for (const one of [back, other]) one.close();
    });

    test('a job that was on its way when the connection broke is not lost', async () => {
      const jobs = await endpoint();
      const other = await open(jobs, 'other');
      for (let time = 0; time < 5; time += 1) {
        const gone = await open(jobs, `gone-${time}`);
        gone.send('T 1');
        await waitUntilPasses(async () => assert.ok((await jobs.health()).workers.ready >= 2));
        gone.close();
        await gone.closed;
      }
      const id = await jobs.run();
      other.send('T 1');
      const { took, result } = await measureTime(() => other.job());
      assert.equal(result.job.id, id);
      assert.ok(took < WAKEUP_LIMIT_MS, `went elsewhere after ${took} ms`);
      other.close();
    });

    test('a worker that goes gets no more jobs', async () => {
      const jobs = await endpoint();
      const [leaving, other] = [await open(jobs, 'leaving'), await open(jobs, 'other')];
      const held = await jobs.run();
      leaving.send('T 3');
      const { lease } = await leaving.job();
      leaving.send('Q');
      await flushChannel(leaving);
      const id = await jobs.run();
      other.send('T 1');
      assert.equal((await other.job()).job.id, id);
      assert.deepEqual(leaving.unread('J'), []);
      leaving.send(`D ${held} ${lease} {"output":"last"}`);
      await leaving.next('A');
      assert.equal((await jobs.status(held)).output, 'last');
      for (const one of [leaving, other]) one.close();
    });

    test('a worker that asks to be replaced gets no more jobs, and its output does not show it', async () => {
      const jobs = await endpoint();
      const channel = await open(jobs);
      const id = await jobs.run();
      channel.send('T 5');
      const { lease } = await channel.job();
      channel.send(`D ${id} ${lease} {"output":{"a":1},"stopPod":true}`);
      await channel.next('A');
      assert.deepEqual((await jobs.status(id)).output, { a: 1 });
      const other = await jobs.run();
      await flushChannel(channel);
      assert.equal((await jobs.status(other)).status, 'IN_QUEUE');
      assert.deepEqual(channel.unread('J'), []);
      channel.close();
    });

    test('a failed check makes the worker unhealthy', async () => {
      const jobs = await endpoint();
      const channel = await open(jobs);
      channel.send('U {"check":"gpu","reason":"no device\\u0000"}');
      await flushChannel(channel);
      assert.equal((await jobs.health()).workers.unhealthy, 1);
      channel.close();
    });

    test('a worker counts as there while its channel is open', async () => {
      const jobs = await endpoint();
      const channel = await open(jobs);
      assert.deepEqual((await jobs.health()).workers, {
        idle: 1,
        initializing: 0,
        ready: 1,
        running: 0,
        throttled: 0,
        unhealthy: 0,
      });
      channel.send('T 1');
      const id = await jobs.run();
      const { lease } = await channel.job();
      assert.equal((await jobs.health()).workers.running, 1);
      channel.send(`D ${id} ${lease} {}`);
      await channel.next('A');
      assert.equal((await jobs.health()).workers.running, 0);
      channel.close();
    });
  });
}
