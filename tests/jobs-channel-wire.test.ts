import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { before, describe, test } from 'node:test';
import { DATABASES } from '../packages/testing/src/test-database.ts';
import { createQueueEndpoint } from '../packages/testing/src/queue-endpoint-client.ts';
import type { QueueEndpointClient } from '../packages/testing/src/queue-endpoint-client.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';
import { openChannel, openChannelOrFail } from '../packages/testing/src/protocol-workers.ts';
import type { ChannelWorker } from '../packages/testing/src/protocol-workers.ts';

for (const kind of DATABASES) {
  describe(`the wire of the worker channel, on ${kind}`, { concurrency: true }, () => {
    const fixture = serverFixture(kind, { BERTH_RATE_LIMITS: 'off' });
    let ann: TestAccount;
    before(async () => {
      ann = await fixture.createAccount('ann');
    });
    const endpoint = (settings: Record<string, unknown> = {}): Promise<QueueEndpointClient> =>
      createQueueEndpoint(fixture.server.url, ann.key, settings);
    const open = (jobs: QueueEndpointClient, workerId = 'w'): Promise<ChannelWorker> =>
      openChannelOrFail({ url: fixture.server.url, endpointId: jobs.id, workerId, key: ann.key });

    test('lines may come in pieces or many at once, with any text in them', async () => {
      const jobs = await endpoint();
      const channel = await open(jobs);
      const ids = [await jobs.run(), await jobs.run(), await jobs.run(), await jobs.run()];
      channel.socket.write('T');
      await jobs.health();
      channel.socket.write(' 4');
      await jobs.health();
      assert.deepEqual(channel.unread('J'), []);
      channel.socket.write('\n');
      const leases: string[] = [];
      for (const id of ids) {
        const { lease, job } = await channel.job();
        assert.equal(job.id, id);
        leases.push(lease);
      }
      // Cut inside a character, and three lines in one packet.
      const bytes = Buffer.from(`D ${ids[0]} ${leases[0]} {"output":"Grüße 🎉"}\n`);
      const middle = bytes.indexOf(Buffer.from('🎉')) + 2;
      channel.socket.write(bytes.subarray(0, middle));
      await jobs.health();
      channel.socket.write(bytes.subarray(middle));
      channel.send(
        `D ${ids[1]} ${leases[1]} {"output":1}`,
        `D ${ids[2]} ${leases[2]} {"output":NaN}`,
        `D ${ids[3]} ${leases[3]} {}`,
      );
      const acknowledged = new Set([
        await channel.next('A'),
        await channel.next('A'),
        await channel.next('A'),
        await channel.next('A'),
      ]);
      assert.deepEqual(acknowledged, new Set(ids.map((id, index) => `${id} ${leases[index]}`)));
      assert.deepEqual(await Promise.all(ids.map(async (id) => (await jobs.status(id)).output)), [
        'Grüße 🎉',
        1,
        null,
        undefined,
      ]);
      channel.close();
    });

    test('a worker whose key is revoked gets nothing more, over its open channel or its pending poll', async () => {
      const jobs = await endpoint();
      const { id: keyId, key } = (
        await ann.call<{ id: string; key: string }>('POST', '/v2/account/api-keys', {
          name: 'of a worker',
          access: 'ALL',
        })
      ).body;
      const channel = await openChannelOrFail({
        url: fixture.server.url,
        endpointId: jobs.id,
        workerId: 'connected',
        key,
      });
      const stays = await open(jobs, 'stays');
      channel.send('L ');
      await channel.next('H');
      const asking = fetch(`${fixture.server.url}/v2/${jobs.id}/job-take/asks?job_in_progress=0`, {
        headers: { authorization: key },
      });
      while ((await jobs.health()).workers.idle < 3);
      assert.equal((await ann.call('DELETE', `/v2/account/api-keys/${keyId}`)).status, 204);
      await channel.closed;
      const id = await jobs.run();
      assert.equal((await asking).status, 401);
      assert.equal((await jobs.status(id)).status, 'IN_QUEUE');
      stays.send('T 1');
      assert.equal((await stays.job()).job.id, id);
      stays.close();
    });

    test('a request that was written on many lines comes on one', async () => {
      const jobs = await endpoint();
      const channel = await open(jobs);
      channel.send('T 2');
      const body = { input: { text: 'one\ntwo\r\n', list: [1, 2] }, policy: { ttl: 600_000 } };
      for (const indent of ['\t', '  ']) {
        const { body: made } = await jobs.call(
          'POST',
          'run',
          `\r\n${JSON.stringify(body, null, indent).replaceAll('\n', '\r\n')}\n`,
        );
        const { lease, job } = await channel.job();
        assert.deepEqual(job, { ...body, id: made.id });
        channel.send(`D ${job.id} ${lease} {}`);
        assert.equal(await channel.next('A'), `${job.id} ${lease}`);
      }
      channel.close();
    });

    test('a large job and a large result go through', async () => {
      const jobs = await endpoint();
      const channel = await open(jobs);
      const input = 'ö'.repeat(4_000_000);
      const id = await jobs.run(input);
      channel.send('T 1');
      const { lease, job } = await channel.job();
      assert.ok(job.input === input);
      channel.send(`D ${id} ${lease} ${JSON.stringify({ output: input + input })}`);
      await channel.next('A');
      assert.ok((await jobs.status(id)).output === input + input);
      channel.close();
    });

    test('an unauthorized worker is refused, and the public protocol answers as before', async () => {
      const [jobs, other] = [await endpoint(), await endpoint()];
      const bob = await fixture.createAccount(`bob of ${kind}`);
      const readOnly = (
        await ann.call<{ key: string }>('POST', '/v2/account/api-keys', {
          name: 'reader',
          access: 'READ_ONLY',
        })
      ).body.key;
      const refusals = [
        [jobs.id, 'w', 'rpa_WRONG', '401 Unauthorized'],
        [jobs.id, 'w', 'rpw_wrong', '401 Unauthorized'],
        [jobs.id, 'w', bob.key, '404 Not Found'],
        [jobs.id, 'w', readOnly, '403 Forbidden'],
        ['nosuchendpoint', 'w', ann.key, '404 Not Found'],
        [other.id, '', ann.key, '404 Not Found'],
        [other.id, '%ff', ann.key, '400 Bad Request'],
      ] as const;
      for (const [endpointId, workerId, key, refused] of refusals)
        assert.deepEqual(await openChannel({ url: fixture.server.url, endpointId, workerId, key }), {
          refused,
        });
      const id = await jobs.run();
      const worker = jobs.worker();
      assert.equal((await worker.take()).id, id);
      worker.close();
    });

    test('a protocol error ends the connection and nothing else', async () => {
      const jobs = await endpoint();
      const [good, id] = [await open(jobs, 'good'), await jobs.run()];
      good.send('T 1');
      const { lease } = await good.job();
      for (const line of [
        'Z',
        'hello',
        `D ${id}`,
        `D ${id} ${lease} {"output":`,
        `D ${id} ${lease} []`,
        'U nonsense',
        'GET / HTTP/1.1',
      ]) {
        const bad = await open(jobs, 'bad');
        bad.send(line);
        await bad.closed;
      }
      assert.equal((await jobs.status(id)).status, 'IN_PROGRESS');
      good.send(`D ${id} ${lease} {"output":"good"}`);
      await good.next('A');
      assert.equal((await jobs.status(id)).output, 'good');
      good.close();
    });

    test('a connection that is cut off while it opens affects no other', async () => {
      const jobs = await endpoint();
      const { port } = new URL(fixture.server.url);
      for (const key of [ann.key, 'rpa_WRONG']) {
        for (const path of [`/v2/${jobs.id}/job-channel/w`, '/elsewhere']) {
          for (let time = 0; time < 10; time += 1) {
            const socket = connect(Number(port), '127.0.0.1');
            socket.on('error', () => socket.destroy());
            await new Promise((resolve) => socket.once('connect', resolve));
            socket.write(
              `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: berth-worker/1\r\n` +
                `Authorization: ${key}${time}\r\n\r\n`,
            );
            if (time % 2 === 0) await new Promise((resolve) => setImmediate(resolve));
            socket.resetAndDestroy();
          }
        }
      }
      assert.equal((await jobs.call('GET', 'health')).status, 200);
      assert.equal(fixture.server.process.exitCode, null);
    });
  });
}
