import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createApiClient } from '../packages/testing/src/api-client.ts';
import type { ApiClient } from '../packages/testing/src/api-client.ts';
import { createQueueEndpoint } from '../packages/testing/src/queue-endpoint-client.ts';
import { SeveralServers } from '../packages/testing/src/several-servers-fixture.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

/** Requests that one key may make in an hour, at all servers together. */
const PER_HOUR = 400;

interface Limit {
  name: string;
  limit: number | null;
}

describe('limits of an account over three servers', () => {
  let servers: SeveralServers;
  let account: { id: string; key: string };
  before(async () => {
    servers = await SeveralServers.start(3, {
      env: { BERTH_RATE_LIMITS: 'on', BERTH_RATE_LIMIT_PER_HOUR: String(PER_HOUR) },
    });
    account = await createAccount('limited');
  });
  after(() => servers?.stop());

  async function createAccount(name: string): Promise<{ id: string; key: string }> {
    const operator = servers.slots[0]?.server.client();
    const made = await operator?.call<{ id: string; key: string }>('POST', '/v2/accounts', { name });
    assert.ok(made !== undefined && made.status === 201, made?.text);
    return { id: made.body.id, key: made.body.key };
  }

  const clients = ({ key } = account): ApiClient[] =>
    servers.slots.map(({ server }) => createApiClient(server.url, key));

  /** Set at one server, and known to all of them. */
  async function setLimits(limits: Record<string, number | null>): Promise<void> {
    const path = `/v2/accounts/${account.id}/limits`;
    const set = await servers.slots[0]?.server.client().call('PATCH', path, limits);
    assert.equal(set?.status, 200, set?.text);
    for (const { server } of servers.slots)
      await waitFor('the server knows the limits', async () => {
        const { body } = await server.client().call<{ limits: Limit[] }>('GET', path);
        return Object.entries(limits).every(
          ([name, limit]) => body.limits.find((shown) => shown.name === name)?.limit === limit,
        );
      });
  }

  test('requests at all of them together create no more than the limit allows', async () => {
    await setLimits({ volumeBytes: 50_000_000_000 });
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, index) => index).flatMap((index) =>
        clients().map((client) =>
          client.call('POST', '/v2/network-volumes', {
            name: `v${index}`,
            size: 10,
            dataCenter: 'LOCAL-1',
          }),
        ),
      ),
    );
    const statuses = answers.map(({ status }) => status).sort();
    assert.deepEqual(statuses, [...Array<number>(5).fill(201), ...Array<number>(19).fill(507)]);
  });

  test('a queue that is full at one server is full at the others before they read it again', async () => {
    const [first] = servers.slots;
    assert.ok(first !== undefined);
    const endpoint = await createQueueEndpoint(first.server.url, account.key);
    await setLimits({ queuedJobs: 100 });
    const submit = (client: ApiClient): Promise<number> =>
      client.call('POST', `/v2/${endpoint.id}/run`, { input: 1 }).then(({ status }) => status);
    // Each server has its own count of the queue from here on.
    const everywhere = clients();
    assert.deepEqual(await Promise.all(everywhere.map(submit)), [200, 200, 200]);
    const [one, ...rest] = everywhere;
    assert.ok(one !== undefined);
    const filled = await Promise.all(Array.from({ length: 120 }, () => submit(one)));
    assert.equal(filled.filter((status) => status === 200).length, 97);
    for (const client of rest) await waitFor('a refusal', async () => (await submit(client)) === 403);
    const { jobs } = await endpoint.health();
    assert.ok(jobs.inQueue <= 110, `${jobs.inQueue} jobs`);
  });

  test('an account that has used up its requests of this minute has none at any server', async () => {
    const owner = account;
    account = await createAccount('requests');
    await setLimits({ requests: 60 });
    const [first, ...others] = clients();
    account = owner;
    assert.ok(first !== undefined);
    assert.equal(await useUp(first), 60);
    for (const client of others) {
      const accepted = await useUp(client);
      assert.ok(accepted < 30, `${accepted} requests before the server knew`);
    }
  });

  /** Sends requests to one server until it refuses one. Returns how many it took. */
  async function useUp(client: ApiClient): Promise<number> {
    for (let accepted = 0; ; accepted += 1) {
      const { status, text } = await client.call('GET', '/v2/account');
      if (status === 429) return accepted;
      assert.equal(status, 200, text);
    }
  }

  test('a key that has used up its requests at one server has none at the others', async () => {
    const [first, ...others] = clients(await createAccount('one after the other'));
    assert.ok(first !== undefined);
    assert.equal(await useUp(first), PER_HOUR);
    for (const client of others) {
      const accepted = await useUp(client);
      assert.ok(accepted < PER_HOUR / 4, `${accepted} requests before the server knew`);
    }
  });

  test('a key may make no more requests at all of them together, but for a burst', async () => {
    const accepted = await Promise.all(clients(await createAccount('all at once')).map(useUp));
    const total = accepted.reduce((sum, one) => sum + one, 0);
    assert.ok(total >= PER_HOUR && total < 2 * PER_HOUR, `${accepted.join(' + ')} requests`);
  });
});
