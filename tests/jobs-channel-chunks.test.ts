import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { DATABASES } from '../packages/testing/src/test-database.ts';
import { createQueueEndpoint } from '../packages/testing/src/queue-endpoint-client.ts';
import type { QueueEndpointClient } from '../packages/testing/src/queue-endpoint-client.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';
import { openChannelOrFail } from '../packages/testing/src/protocol-workers.ts';
import type { ChannelWorker } from '../packages/testing/src/protocol-workers.ts';

for (const kind of DATABASES) {
  describe(`chunks on the worker channel, on ${kind}`, { concurrency: true }, () => {
    const fixture = serverFixture(kind, { BERTH_RATE_LIMITS: 'off' });
    let ann: TestAccount;
    before(async () => {
      ann = await fixture.createAccount('ann');
    });
    const endpoint = (settings: Record<string, unknown> = {}): Promise<QueueEndpointClient> =>
      createQueueEndpoint(fixture.server.url, ann.key, settings);
    const open = (jobs: QueueEndpointClient, workerId = 'w'): Promise<ChannelWorker> =>
      openChannelOrFail({ url: fixture.server.url, endpointId: jobs.id, workerId, key: ann.key });
    /** A job in the hands of a worker, its chunks, and how often they are acknowledged. */
    const streaming = async (jobs: QueueEndpointClient, workerId = 'w') => {
      const channel = await open(jobs, workerId);
      const id = await jobs.run();
      channel.send('T 1');
      const { lease } = await channel.job();
      return {
        channel,
        id,
        lease,
        say: (number: number | string, output: unknown = Number(number), by = channel) =>
          by.send(`S ${id} ${lease}~${number} ${JSON.stringify({ output })}`),
        /** Resolves when everything up to a number is acknowledged. */
        kept: async (upTo: number, by = channel): Promise<void> => {
          for (;;) {
            const [job, held, number] = (await by.next('K')).split(' ');
            assert.deepEqual([job, held], [id, lease]);
            if (Number(number) === upTo) return;
          }
        },
        end: async (by = channel): Promise<unknown> => {
          by.send(`D ${id} ${lease} {"output":"end"}`);
          assert.equal(await by.next('A'), `${id} ${lease}`);
          return (await jobs.call<{ output: unknown }[]>('GET', `stream/${id}`)).body.map(
            ({ output }) => output,
          );
        },
      };
    };

    test('chunks with numbers are acknowledged, many at a time, and repeats are stored once', async () => {
      const { channel, id, lease, say, kept, end } = await streaming(await endpoint());
      channel.send(
        ...Array.from({ length: 1_000 }, (_, n) => `S ${id} ${lease}~${n + 1} {"output":${n + 1}}`),
      );
      await kept(1_000);
      for (const number of [1, 500, 7, 1_000]) say(number, 'again');
      await kept(1_000);
      for (const number of [999, 1_000, 1_001]) say(number);
      await kept(1_001);
      assert.deepEqual(channel.unread('K').length, 0);
      assert.deepEqual(
        await end(),
        Array.from({ length: 1_001 }, (_, n) => n + 1),
      );
      channel.close();
    });

    test('a worker that resends its chunks on another connection has each stored once', async () => {
      const jobs = await endpoint();
      const { channel, say, kept, end } = await streaming(jobs);
      for (const number of [1, 2, 3]) say(number);
      await kept(3);
      for (const number of [4, 5]) say(number);
      // Both are open: what the first has not written yet comes in among what the second says.
      const again = await open(jobs);
      for (const number of [3, 4, 5, 6]) say(number, number, again);
      await kept(6, again);
      channel.close();
      assert.deepEqual(await end(again), [1, 2, 3, 4, 5, 6]);
      again.close();
    });

    test('what was cut counts as one, and chunks without a number may come among those with one', async () => {
      const { channel, id, lease, say, kept, end } = await streaming(await endpoint());
      const large = 'ü'.repeat(700_000);
      say(1, large);
      channel.send(`S ${id} ${lease} {"output":"no number"}`);
      say(2);
      say(1, large);
      say(2);
      say(3);
      await kept(3);
      const streamed = (await end()) as unknown[];
      assert.ok(streamed.slice(0, -3).join('') === large && streamed.length > 4);
      assert.deepEqual(streamed.slice(-3), ['no number', 2, 3]);
      channel.close();
    });

    test('a number that is missing, wrong or out of turn ends the connection, and nothing of it is kept', async () => {
      const jobs = await endpoint();
      const { channel, id, lease, say, kept, end } = await streaming(jobs);
      say(1);
      await kept(1);
      for (const number of ['', '0', '-1', '1.5', '2147483648', 'x', '2~2', ' 2']) {
        const bad = await open(jobs);
        bad.send(`S ${id} ${lease}~${number} {"output":"bad"}`);
        await bad.closed;
        assert.deepEqual(bad.unread('K'), [], number);
      }
      for (const numbers of [[3], [2, 4], [4, 3, 2], [2147483647]]) {
        const bad = await open(jobs);
        bad.send(...numbers.map((number) => `S ${id} ${lease}~${number} {"output":"gap"}`));
        await bad.closed;
        assert.deepEqual(bad.unread('K'), [], String(numbers));
      }
      for (const line of [
        `S ${id} ${lease}~2 {"output":`,
        `S ${id} ${lease}~2 []`,
        `S ${id} ${lease}~2 `,
        `S ${id} ${lease}~2`,
        `S ${id}`,
      ]) {
        const bad = await open(jobs);
        bad.send(line);
        await bad.closed;
      }
      assert.equal(channel.socket.destroyed, false);
      assert.deepEqual(await end(), [1]);
      channel.close();
    });

    test('a result that comes after a gap does not overtake what is missing', async () => {
      const jobs = await endpoint();
      const { id, lease, say, kept, end } = await streaming(jobs);
      const bad = await open(jobs);
      bad.send(`S ${id} ${lease}~2 {"output":2}`, `D ${id} ${lease} {"output":"too early"}`);
      await bad.closed;
      assert.deepEqual([bad.unread('A'), (await jobs.status(id)).status], [[], 'IN_PROGRESS']);
      const good = await open(jobs);
      say(1, 1, good);
      say(2, 2, good);
      await kept(2, good);
      assert.deepEqual(await end(good), [1, 2]);
      good.close();
    });

    test("chunks of another's job or lease, of no job and after the end change nothing", async () => {
      const jobs = await endpoint();
      const { channel, id, lease, say, kept, end } = await streaming(jobs);
      const other = await open(jobs, 'other');
      say(1);
      await kept(1);
      say(2, 'stolen', other);
      await kept(2, other);
      // Whoever holds nothing owes nothing: there is no turn to be out of.
      say(9, 'stolen', other);
      await kept(9, other);
      for (const line of [
        `${id} wrong~2`,
        `${id} ~2`,
        'nonsense x~5',
        `${id.slice(0, -8)}00000000 ${lease}~1`,
      ]) {
        channel.send(`S ${line} {"output":"wrong"}`);
        const [name = '', held = ''] = line.split(' ');
        assert.equal(await channel.next('K'), `${name} ${held.replace('~', ' ')}`);
      }
      const elsewhere = await endpoint();
      const foreign = await open(elsewhere);
      say(2, 'of another endpoint', foreign);
      await kept(2, foreign);
      assert.deepEqual(await end(), [1]);
      for (const number of [1, 2, 50]) {
        say(number, 'late');
        await kept(number);
      }
      assert.deepEqual((await jobs.call('GET', `stream/${id}`)).body, []);
      for (const one of [channel, other, foreign]) one.close();
    });

    test('numbers restart with the next lease, also after a job that had streamed was returned', async () => {
      const jobs = await endpoint();
      const { channel, id, lease, say, kept } = await streaming(jobs);
      for (const number of [1, 2, 3]) say(number, 'before');
      await kept(3);
      assert.equal((await jobs.call<unknown[]>('GET', `stream/${id}`)).body.length, 3);
      channel.send(`B ${id} ${lease}`, 'T 1');
      assert.equal(await channel.next('A'), `${id} ${lease}`);
      const { lease: next } = await channel.job();
      channel.send(`S ${id} ${next}~1 {"output":"after"}`, `S ${id} ${lease}~4 {"output":"stale"}`);
      assert.deepEqual(
        new Set([await channel.next('K'), await channel.next('K')]),
        new Set([`${id} ${next} 1`, `${id} ${lease} 4`]),
      );
      channel.send(`D ${id} ${next} {"output":"end"}`);
      await channel.next('A');
      assert.deepEqual((await jobs.call('GET', `stream/${id}`)).body, [{ output: 'after' }]);
      channel.close();
    });

    test('a chunk that comes by HTTP under its number is stored once, and numbers may be left out there', async () => {
      const jobs = await endpoint();
      const { channel, id, lease, say, kept, end } = await streaming(jobs);
      const worker = jobs.worker('w');
      const post = async (mark: string, output: unknown): Promise<number> =>
        (
          await worker.send('POST', `job-stream/w/${id}?gpu=none`, {
            body: JSON.stringify({ output }),
            headers: { 'berth-chunk': mark },
          })
        ).status;
      say(1);
      say(2);
      await kept(2);
      for (const number of [1, 2, 3, 3, 5, 4, 5]) assert.equal(await post(`${lease}~${number}`, number), 200);
      for (const mark of [`wrong~6`, '~6']) assert.equal(await post(mark, 'wrong'), 200);
      for (const mark of ['6', lease, `${lease}~`, `${lease}~0`, `${lease}~x`])
        assert.equal(await post(mark, 'bad'), 400);
      assert.deepEqual(await end(), [1, 2, 3, 5]);
      assert.equal(await post(`${lease}~6`, 'late'), 200);
      worker.close();
      channel.close();
    });
  });
}
