import assert from 'node:assert/strict';
import { request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { before, describe, test } from 'node:test';
import { DATABASES } from '../packages/testing/src/test-database.ts';
import { createQueueEndpoint } from '../packages/testing/src/queue-endpoint-client.ts';
import type { JobView, QueueEndpointClient } from '../packages/testing/src/queue-endpoint-client.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';

const MEGABYTE = 1024 * 1024;
interface Requests {
  requests: (JobView & { createdAt: string })[];
}

for (const kind of DATABASES) {
  describe(`the list of requests, on ${kind}`, { concurrency: true }, () => {
    const fixture = serverFixture(kind, { BERTH_RATE_LIMITS: 'off' });
    let ann: TestAccount;
    before(async () => {
      ann = await fixture.createAccount('ann');
    });
    const endpoint = (): Promise<QueueEndpointClient> => createQueueEndpoint(fixture.server.url, ann.key);
    const open = (jobs: QueueEndpointClient): Promise<IncomingMessage> =>
      new Promise((resolve, reject) => {
        request(
          `${fixture.server.url}/v2/${jobs.id}/requests?limit=1000`,
          { headers: { authorization: `Bearer ${ann.key}` } },
          resolve,
        )
          .on('error', reject)
          .end();
      });
    const ids = async (jobs: QueueEndpointClient, query: string): Promise<string[]> =>
      (await jobs.call<Requests>('GET', `requests${query}`)).body.requests.map(({ id }) => id);

    test('shows each job with its input and what came of it, newest first, by status and by page', async () => {
      const jobs = await endpoint();
      assert.deepEqual((await jobs.call<Requests>('GET', 'requests')).body, { requests: [] });
      const worker = jobs.worker();
      const [done, failed, running, waiting] = [
        await jobs.run({ n: 1 }),
        await jobs.run({ n: 2 }),
        await jobs.run({ n: 3 }),
        await jobs.run({ n: 4 }),
      ] as [string, string, string, string];
      for (let taken = 0; taken < 3; taken += 1) await worker.take();
      await worker.done(done, { output: { text: 'world' } });
      await worker.done(failed, { error: 'no luck' });
      const { body, headers } = await jobs.call<Requests>('GET', 'requests');
      assert.ok(Number(headers.get('content-length')) > 0, 'a small list has its length');
      assert.deepEqual(
        body.requests.map(({ id, status, input, output, error }) => ({ id, status, input, output, error })),
        [
          { id: waiting, status: 'IN_QUEUE', input: { n: 4 }, output: undefined, error: undefined },
          { id: running, status: 'IN_PROGRESS', input: { n: 3 }, output: undefined, error: undefined },
          { id: failed, status: 'FAILED', input: { n: 2 }, output: undefined, error: 'no luck' },
          { id: done, status: 'COMPLETED', input: { n: 1 }, output: { text: 'world' }, error: undefined },
        ],
      );
      for (const [status, id] of [
        ['IN_QUEUE', waiting],
        ['IN_PROGRESS', running],
        ['FAILED', failed],
        ['COMPLETED', done],
      ] as const)
        assert.deepEqual(await ids(jobs, `?status=${status}`), [id]);
      assert.deepEqual(await ids(jobs, '?status=CANCELLED'), []);
      assert.deepEqual(await ids(jobs, '?limit=2&offset=1'), [running, failed]);
      assert.deepEqual(await ids(jobs, '?offset=4'), []);
    });

    test('a large list arrives whole, and slow readers do not delay other requests', async () => {
      const jobs = await endpoint();
      const large = 'x'.repeat(2 * MEGABYTE);
      const made: string[] = [];
      for (let n = 0; n < 12; n += 1) made.unshift(await jobs.run({ n, large }));
      const [unread, left] = await Promise.all([open(jobs), open(jobs)]);
      assert.deepEqual([unread.statusCode, unread.headers['content-length']], [200, undefined]);
      left.destroy();
      const { body } = await jobs.call<Requests>('GET', 'requests?limit=1000');
      assert.deepEqual(
        body.requests.map(({ id }) => id),
        made,
      );
      for (const { input } of body.requests) assert.equal((input as { large: string }).large, large);
      const chunks: Buffer[] = [];
      for await (const chunk of unread) chunks.push(chunk as Buffer);
      assert.deepEqual(
        (JSON.parse(Buffer.concat(chunks).toString()) as Requests).requests.map(({ id }) => id),
        made,
      );
    });

    test('what is removed while a list is read is left out of the rest', async () => {
      const jobs = await endpoint();
      for (let n = 0; n < 30; n += 1) await jobs.run({ large: 'x'.repeat(2 * MEGABYTE) });
      const answer = await open(jobs);
      // What is not read yet is not loaded yet, and then it is gone.
      assert.equal((await jobs.call<{ removed: number }>('POST', 'purge-queue')).body.removed, 30);
      const chunks: Buffer[] = [];
      for await (const chunk of answer) chunks.push(chunk as Buffer);
      const { requests } = JSON.parse(Buffer.concat(chunks).toString()) as Requests;
      assert.ok(requests.length >= 1 && requests.length < 30, `${requests.length} of 30`);
    });
  });
}
