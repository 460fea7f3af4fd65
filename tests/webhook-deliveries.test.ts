import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingHttpHeaders, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { createApiClient } from '../packages/testing/src/api-client.ts';
import { DATABASES } from '../packages/testing/src/test-database.ts';
import { queueEndpointClient, createQueueEndpoint } from '../packages/testing/src/queue-endpoint-client.ts';
import type { QueueEndpointClient } from '../packages/testing/src/queue-endpoint-client.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';
import { waitUntilPasses } from '../packages/testing/src/wait-for.ts';

interface Received {
  headers: IncomingHttpHeaders;
  body: string;
}

interface DeliveryView {
  id: string;
  jobId: string;
  url: string;
  state: string;
  attempts: number;
  nextAt: number | null;
  lastStatus: number | null;
  lastError: string | null;
}

for (const kind of DATABASES) {
  describe(`webhooks, on ${kind}`, () => {
    const fixture = serverFixture(kind, {
      BERTH_RATE_LIMITS: 'off',
      BERTH_WEBHOOKS_ALLOW_PRIVATE: 'true',
      BERTH_WEBHOOKS_ATTEMPTS: '2',
      BERTH_WEBHOOKS_PAUSE: '0',
    });
    let ann: TestAccount;
    let receiver: Server;
    let answer = 200;
    const received: Received[] = [];
    before(async () => {
      ann = await fixture.createAccount('ann');
      receiver = createServer((request, response) => {
        void text(request).then((body) => {
          received.push({ headers: request.headers, body });
          response.writeHead(answer).end();
        });
      });
      await once(receiver.listen(0, '127.0.0.1'), 'listening');
    });
    after(() => {
      receiver.close();
      receiver.closeAllConnections();
    });

    const hook = (): string => `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;
    const keyOf = async (settings: Record<string, unknown>): Promise<string> =>
      (await ann.call<{ key: string }>('POST', '/v2/account/api-keys', { name: 'other', ...settings })).body
        .key;
    const log = async (jobs: QueueEndpointClient, jobId: string): Promise<DeliveryView> => {
      const { body } = await jobs.call<{ deliveries: DeliveryView[] }>('GET', `webhooks?jobId=${jobId}`);
      assert.equal(body.deliveries.length, 1);
      return body.deliveries[0] ?? assert.fail();
    };
    /** The counters of all servers of this test: there is one. */
    const counted = async (): Promise<Record<string, number>> => {
      const { text: page } = await fixture.server.client().call('GET', '/metrics');
      return Object.fromEntries(
        ['berth_webhook_attempts_total', 'berth_webhooks_delivered_total', 'berth_webhooks_failed_total'].map(
          (name) => [name, Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(page)?.[1])],
        ),
      );
    };
    const ended = async (jobs: QueueEndpointClient, result: unknown): Promise<string> => {
      const worker = jobs.worker();
      const id = await jobs.run({ n: 1 }, { webhook: hook() });
      await worker.take();
      await worker.done(id, result);
      worker.close();
      return id;
    };

    test('the secret is shown to keys that may write, the same every time; each account has its own', async () => {
      const { status, body } = await ann.call<{ secret: string }>('GET', '/v2/account/webhook-secret');
      assert.equal(status, 200);
      assert.match(body.secret, /^whsec_[0-9a-f]{64}$/);
      assert.deepEqual((await ann.call('GET', '/v2/account/webhook-secret')).body, body);
      assert.notEqual(
        (await fixture.operator.call<{ secret: string }>('GET', '/v2/account/webhook-secret')).body.secret,
        body.secret,
      );
      for (const settings of [
        { access: 'READ_ONLY' },
        { access: 'RESTRICTED', scopes: { rest: 'READ' } },
        { access: 'RESTRICTED', scopes: { serverless: 'WRITE' } },
      ]) {
        const refused = await fixture.client(await keyOf(settings)).call('GET', '/v2/account/webhook-secret');
        assert.equal(refused.status, 403, JSON.stringify(settings));
        assert.doesNotMatch(refused.text, /whsec/);
      }
      assert.equal(
        (
          await fixture
            .client(await keyOf({ access: 'RESTRICTED', scopes: { rest: 'WRITE' } }))
            .call('GET', '/v2/account/webhook-secret')
        ).status,
        200,
      );
      assert.equal((await fixture.client(undefined).call('GET', '/v2/account/webhook-secret')).status, 401);
      assert.equal((await fixture.client(ann.key).call('POST', '/v2/account/webhook-secret')).status, 405);
    });

    test('a receiver checks what it got with the secret, and the log and the counters tell of it', async () => {
      const jobs = await createQueueEndpoint(fixture.server.url, ann.key);
      const { secret } = (await ann.call<{ secret: string }>('GET', '/v2/account/webhook-secret')).body;
      const before = await counted();
      const id = await ended(jobs, { output: { text: 'Grüße' } });
      await waitUntilPasses(async () => assert.equal((await log(jobs, id)).state, 'delivered'));
      const [{ headers, body } = assert.fail()] = received.splice(0);
      assert.equal(
        headers['x-berth-signature'],
        `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
      );
      assert.deepEqual(
        [headers['x-berth-delivery'], headers['x-berth-attempt']],
        [(await log(jobs, id)).id, '1'],
      );
      const { status, output, input, webhook } = JSON.parse(body) as Record<string, unknown>;
      assert.deepEqual(
        { status, output, input, webhook },
        { status: 'COMPLETED', output: { text: 'Grüße' }, input: { n: 1 }, webhook: hook() },
      );
      await waitUntilPasses(async () =>
        assert.deepEqual(
          Object.values(await counted()),
          Object.values(before).map((count, n) => count + (n === 2 ? 0 : 1)),
        ),
      );
    });

    test('one that fails can be sent once more, and has all its attempts again', async () => {
      const jobs = await createQueueEndpoint(fixture.server.url, ann.key);
      const before = await counted();
      answer = 500;
      const id = await ended(jobs, { error: 'no' });
      await waitUntilPasses(async () => assert.equal((await log(jobs, id)).state, 'failed'));
      const failed = await log(jobs, id);
      assert.deepEqual(
        [failed.attempts, failed.lastStatus, failed.lastError, failed.nextAt],
        [2, 500, 'the receiver answered 500', null],
      );
      answer = 204;
      const again = await jobs.call<DeliveryView>('POST', `webhooks/${failed.id}/redeliver`);
      assert.deepEqual([again.status, again.body.state, again.body.id], [200, 'pending', failed.id]);
      await waitUntilPasses(async () => assert.equal((await log(jobs, id)).state, 'delivered'));
      // Delivered at the first of its two attempts: the next series has two all the same.
      answer = 500;
      await jobs.call('POST', `webhooks/${failed.id}/redeliver`);
      await waitUntilPasses(async () =>
        assert.deepEqual([(await log(jobs, id)).state, (await log(jobs, id)).attempts], ['failed', 6]),
      );
      answer = 200;
      assert.deepEqual(
        received.splice(0).map(({ headers }) => [headers['x-berth-delivery'], headers['x-berth-attempt']]),
        ['1', '2', '3', '5', '6'].map((attempt) => [failed.id, attempt]),
      );
      await waitUntilPasses(async () =>
        assert.deepEqual(
          Object.values(await counted()),
          Object.values(before).map((count, n) => count + ([5, 1, 2][n] ?? 0)),
        ),
      );
    });

    test('a delivery that is unknown or of another account cannot be sent', async () => {
      const [jobs, other] = [
        await createQueueEndpoint(fixture.server.url, ann.key),
        await createQueueEndpoint(fixture.server.url, ann.key),
      ];
      const id = await ended(jobs, { output: 1 });
      await waitUntilPasses(async () => assert.equal((await log(jobs, id)).state, 'delivered'));
      const { id: delivery } = await log(jobs, id);
      const reader = await keyOf({ access: 'READ_ONLY' });
      for (const [expected, asked] of [
        [404, other.call<{ error: string }>('POST', `webhooks/${delivery}/redeliver`)],
        [404, jobs.call<{ error: string }>('POST', 'webhooks/nothing/redeliver')],
        [404, jobs.call<{ error: string }>('POST', `webhooks/${delivery}/forget`)],
        [
          403,
          queueEndpointClient(createApiClient(fixture.server.url, reader), jobs.id, reader).call<{
            error: string;
          }>('GET', 'webhooks'),
        ],
      ] as const) {
        const { status, body } = await asked;
        assert.deepEqual([status, Object.keys(body)], [expected, ['error']]);
      }
      assert.equal(received.splice(0).length, 1);
    });
  });
}
