import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ApiResponse } from '../packages/testing/src/api-client.ts';
import { createQueueEndpoint } from '../packages/testing/src/queue-endpoint-client.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';
import { DATABASES } from '../packages/testing/src/test-database.ts';

interface Limit {
  name: string;
  used: number;
  limit: number | null;
  warning: boolean;
}

for (const kind of DATABASES) {
  describe(`requests of an account, on ${kind}`, () => {
    const fixture = serverFixture(kind, { BERTH_RATE_LIMITS: 'off', BERTH_FAST_PATH: 'on' });

    async function setLimit(account: { id: string }, requests: number | null): Promise<void> {
      const path = `/v2/accounts/${account.id}/limits`;
      const { status, text } = await fixture.operator.call('PATCH', path, { requests });
      assert.equal(status, 200, text);
    }

    async function limitOf(account: { id: string }): Promise<Limit | undefined> {
      const path = `/v2/accounts/${account.id}/limits`;
      const { body } = await fixture.operator.call<{ limits: Limit[] }>('GET', path);
      return body.limits.find(({ name }) => name === 'requests');
    }

    function assertRefused({ status, headers, text }: ApiResponse<unknown>, expected = 429): void {
      assert.equal(status, expected, text);
      const seconds = Number(headers.get('retry-after'));
      assert.ok(seconds >= 1 && seconds <= 60, `Retry-After: ${seconds}`);
      assert.match(
        text,
        /the limit requests \(requests in a minute\) of this account is reached: 7 of 7 used; try again in \d+ s; an operator can raise it: berth account limits ACCOUNT --set requests=VALUE/,
      );
    }

    /** Without a worker, every other method would wait for one. */
    async function openAi({ key }: TestAccount, endpointId: string): Promise<ApiResponse<unknown>> {
      const answer = await fetch(`${fixture.server.url}/v2/${endpointId}/openai/v1/models`, {
        method: 'PUT',
        headers: { authorization: `Bearer ${key}` },
      });
      const { status, headers } = answer;
      return { status, headers, text: await answer.text(), body: undefined };
    }

    test('count together at all interfaces, are refused there, and cost others nothing', async () => {
      const ann = await fixture.createAccount('ann');
      const bob = await fixture.createAccount('bob');
      const endpoint = await createQueueEndpoint(fixture.server.url, ann.key);
      await setLimit(ann, 7);
      const s3 = (account: TestAccount): Promise<ApiResponse<unknown>> => account.call('GET', '/s3/');
      const requests: (() => Promise<ApiResponse<unknown>>)[] = [
        () => ann.call('GET', '/v2/account'),
        () => ann.call('GET', '/v1/templates'),
        () => ann.call('POST', '/graphql', { query: '{ myself { id } }' }),
        () => endpoint.call('POST', 'run', { input: 1 }),
        () => endpoint.call('GET', 'health'),
        () => openAi(ann, endpoint.id),
      ];
      for (const request of requests) {
        const { status, text } = await request();
        assert.ok(status < 429, text);
      }
      assert.deepEqual(await limitOf(ann), { name: 'requests', used: 6, limit: 7, warning: true });
      assert.equal((await s3(ann)).status, 200);
      for (const request of requests) assertRefused(await request());
      // S3 clients wait and try again after a 503.
      assertRefused(await s3(ann), 503);
      const { body } = await ann.call<{ limit: string; used: number; maximum: number }>('GET', '/v2/account');
      assert.deepEqual([body.limit, body.used, body.maximum], ['requests', 7, 7]);
      assert.equal((await bob.call('GET', '/v2/account')).status, 200);
      // What was refused did not count, and a higher limit holds at once.
      await setLimit(ann, 8);
      assert.equal((await ann.call('GET', '/v2/account')).status, 200);
      assert.equal((await ann.call('GET', '/v2/account')).status, 429);
      await setLimit(ann, null);
      assert.equal((await ann.call('GET', '/v2/account')).status, 200);
    });

    test('are set and shown through GraphQL', async () => {
      const carol = await fixture.createAccount('carol');
      const set = await fixture.operator.graphql<{ updateAccountLimits: Limit[] }>(
        'mutation ($id: String!) { updateAccountLimits(accountId: $id, limits: [{ name: "requests", ' +
          'limit: 1 }]) { name used limit } }',
        { id: carol.id },
      );
      assert.deepEqual(
        set.body.data?.updateAccountLimits.find(({ name }) => name === 'requests'),
        { name: 'requests', used: 0, limit: 1 },
      );
      const shown = await carol.graphql<{ accountLimits: Limit[] }>('{ accountLimits { name used limit } }');
      assert.deepEqual(
        shown.body.data?.accountLimits.find(({ name }) => name === 'requests'),
        { name: 'requests', used: 1, limit: 1 },
      );
    });
  });

  describe(`requests of all accounts together, on ${kind}`, () => {
    const fixture = serverFixture(kind, {
      BERTH_RATE_LIMITS: 'off',
      BERTH_LIMITS_ACCOUNT: 'requests=4',
      BERTH_LIMITS_INSTALLATION: 'requests=6',
    });

    test('are limited too; the root account is not, unless it has a limit of its own', async () => {
      const [ann, bob] = [await fixture.createAccount('ann'), await fixture.createAccount('bob')];
      for (let call = 0; call < 4; call += 1)
        assert.equal((await ann.call('GET', '/v2/account')).status, 200);
      assert.match((await ann.call('GET', '/v2/account')).text, /of this account is reached: 4 of 4/);
      for (let call = 0; call < 2; call += 1)
        assert.equal((await bob.call('GET', '/v2/account')).status, 200);
      const refused = await bob.call('GET', '/v2/account');
      assert.equal(refused.status, 429);
      assert.match(
        refused.text,
        /of this installation is reached: 6 of 6 used; .* in the setting limits\.installation/,
      );
      for (let call = 0; call < 10; call += 1)
        assert.equal((await fixture.operator.call('GET', '/v2/account')).status, 200);
      const none = await fixture.operator.call('PATCH', '/v2/accounts/root/limits', { requests: 0 });
      assert.equal(none.status, 400, none.text);
      assert.match(none.text, /must be at least 1: without any, nobody could raise it again/);
      const set = await fixture.operator.call('PATCH', '/v2/accounts/root/limits', { requests: 1 });
      assert.equal(set.status, 200, set.text);
      assert.equal((await fixture.operator.call('GET', '/v2/account')).status, 200);
      assertOwn(await fixture.operator.call('GET', '/v2/account'));
    });

    function assertOwn({ status, text }: ApiResponse<unknown>): void {
      assert.equal(status, 429);
      assert.match(text, /of this account is reached: 1 of 1 used/);
    }
  });
}
