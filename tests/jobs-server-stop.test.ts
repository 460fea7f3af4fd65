import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DATABASES } from '../packages/testing/src/test-database.ts';
import { createQueueEndpoint, measureTime } from '../packages/testing/src/queue-endpoint-client.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';
import { openChannelOrFail } from '../packages/testing/src/protocol-workers.ts';
import { waitUntilPasses } from '../packages/testing/src/wait-for.ts';

describe('a server that stops', () => {
  for (const kind of DATABASES) {
    describe(`on ${kind}`, () => {
      const fixture = serverFixture(kind, { BERTH_RATE_LIMITS: 'off' });

      test('sends its workers to other servers and ends all waiting requests', async () => {
        const jobs = await createQueueEndpoint(fixture.server.url, fixture.server.key);
        const channel = await openChannelOrFail({
          url: fixture.server.url,
          endpointId: jobs.id,
          workerId: 'w',
          key: fixture.server.key,
        });
        channel.send('T 1');
        const id = await jobs.run();
        assert.equal((await channel.job()).job.id, id);
        const other = await createQueueEndpoint(fixture.server.url, fixture.server.key);
        const worker = other.worker();
        const polls = [worker.poll(), worker.stops()];
        const calls = [
          jobs.runSync({}, 60_000),
          jobs.call('GET', `status-sync/${id}`),
          jobs.call('GET', `stream/${id}?wait=60000`),
          jobs.call('GET', `stream/${id}`, undefined, { accept: 'text/event-stream' }),
        ];
        await waitUntilPasses(async () =>
          assert.deepEqual([(await jobs.health()).jobs.inQueue, (await other.health()).workers.idle], [1, 1]),
        );
        const { took, result } = await measureTime(() => fixture.server.stop());
        assert.equal(result, 0);
        assert.ok(took < 9_000, `stopped after ${took} ms`);
        assert.equal(await channel.next('G'), '');
        await channel.closed;
        assert.deepEqual(
          (await Promise.all(calls)).map(({ status }) => status),
          [200, 200, 200, 200],
        );
        assert.deepEqual(
          (await Promise.all(polls)).map(({ status }) => status),
          [204, 204],
        );
      });
    });
  }
});
