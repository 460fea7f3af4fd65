import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { createQueueEndpoint } from '../packages/testing/src/queue-endpoint-client.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';
import {
  createPod,
  createRunningPod,
  podAction,
  processesOfInstance,
} from '../packages/testing/src/pod-client.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import { createTestDatabase, DATABASES } from '../packages/testing/src/test-database.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

interface Problem {
  status: number;
  detail: string;
  limit?: string;
  used?: number;
  maximum?: number;
}

interface LimitsView {
  limits: { name: string; used: number; limit: number | null; warning: boolean }[];
}

for (const kind of DATABASES) {
  describe(`limits of accounts, on ${kind}`, () => {
    const fixture = serverFixture(kind, {
      BERTH_RATE_LIMITS: 'off',
      BERTH_PROCESS_ISOLATION: 'none',
      BERTH_GPUS: '2x NVIDIA A40',
      BERTH_LIMITS_ACCOUNT: 'imageBytes=2kB',
      BERTH_LIMITS_INSTALLATION: 'volumeBytes=100GB',
    });

    const setLimits = async (account: TestAccount, limits: Record<string, number | null>): Promise<void> => {
      const { status, text } = await fixture.operator.call(
        'PATCH',
        `/v2/accounts/${account.id}/limits`,
        limits,
      );
      assert.equal(status, 200, text);
    };

    const refused = (
      { status, body }: { status: number; body: unknown },
      expected: { status: number; limit: string; used: number; maximum: number },
    ): void => {
      const { limit, used, maximum, detail } = body as Problem;
      assert.deepEqual({ status, limit, used, maximum }, expected);
      assert.match(detail, /an operator can raise it/);
    };

    test('queued jobs and bytes', async () => {
      const account = await fixture.createAccount('queue');
      const endpoint = await createQueueEndpoint(fixture.server.url, account.key);
      const other = await fixture.createAccount('other queue');
      const otherEndpoint = await createQueueEndpoint(fixture.server.url, other.key);
      await setLimits(account, { queuedJobs: 20 });
      const answers = await Promise.all(
        Array.from({ length: 60 }, () => endpoint.call('POST', 'run', { input: 1 })),
      );
      assert.equal(answers.filter(({ status }) => status === 200).length, 20);
      const [refusal] = answers.filter(({ status }) => status !== 200);
      assert.deepEqual([refusal?.status, (refusal?.body as unknown as Problem).limit], [403, 'queuedJobs']);
      await otherEndpoint.run();
      // What leaves the queue makes room at once.
      assert.equal((await endpoint.call('POST', 'purge-queue', {})).status, 200);
      await waitFor(
        'room',
        async () => (await endpoint.call('POST', 'run', { input: 1 })).status === 200,
        2_000,
      );

      await setLimits(account, { queuedJobs: null, queuedBytes: 1_000 });
      const large = { input: 'x'.repeat(600) };
      await waitFor(
        'one large job',
        async () => (await endpoint.call('POST', 'run', large)).status === 200,
        2_000,
      );
      const second = await endpoint.call('POST', 'run', large);
      assert.deepEqual([second.status, (second.body as unknown as Problem).limit], [507, 'queuedBytes']);
      await setLimits(account, { queuedBytes: null });
      await endpoint.run(large);
    });

    test('ended jobs are kept no longer than the account may', async () => {
      const account = await fixture.createAccount('keeps nothing');
      const endpoint = await createQueueEndpoint(fixture.server.url, account.key);
      const endsAndIsKept = async (): Promise<boolean> => {
        const id = await endpoint.run(1, { retention: 60_000 });
        assert.equal((await endpoint.call('POST', `cancel/${id}`, {})).status, 200);
        return (await endpoint.call('GET', `status/${id}`)).status === 200;
      };
      assert.equal(await endsAndIsKept(), true);
      await setLimits(account, { jobHours: 0 });
      assert.equal(await endsAndIsKept(), false);
      const { limits } = (await fixture.operator.call<LimitsView>('GET', `/v2/accounts/${account.id}/limits`))
        .body;
      assert.deepEqual(
        limits.find(({ name }) => name === 'jobHours'),
        { name: 'jobHours', used: 0, limit: 0, warning: false },
      );
    });

    test('pods, GPUs, workers, volumes and images', async () => {
      const account = await fixture.createAccount('things');
      await setLimits(account, { pods: 1, gpus: 1, workers: 3, volumeBytes: 30e9 });
      assert.equal((await createPod(account)).status, 201);
      refused(await createPod(account), {
        status: 403,
        limit: 'pods',
        used: 1,
        maximum: 1,
      });
      const volume = { name: 'v', size: 20, dataCenter: 'LOCAL-1' };
      const made = await account.call<{ id: string }>('POST', '/v2/network-volumes', volume);
      assert.equal(made.status, 201, made.text);
      refused(await account.call('POST', '/v2/network-volumes', { ...volume, name: 'w' }), {
        status: 507,
        limit: 'volumeBytes',
        used: 20e9,
        maximum: 30e9,
      });
      refused(await account.call('PATCH', `/v2/network-volumes/${made.body.id}`, { size: 31 }), {
        status: 507,
        limit: 'volumeBytes',
        used: 20e9,
        maximum: 30e9,
      });
      // The installation's limit is over all accounts.
      refused(await fixture.operator.call('POST', '/v2/network-volumes', { ...volume, size: 81 }), {
        status: 507,
        limit: 'volumeBytes',
        used: 20e9,
        maximum: 100e9,
      });
      await createQueueEndpoint(fixture.server.url, account.key, { workers: { min: 0, max: 2 } });
      const endpoint = {
        name: 'too many',
        type: 'QUEUE',
        image: 'local/shell',
        cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
        scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
        workers: { min: 0, max: 2 },
      };
      refused(await account.call('POST', '/v2/serverless', endpoint), {
        status: 403,
        limit: 'workers',
        used: 2,
        maximum: 3,
      });
      await setLimits(account, { pods: 5, spendPerMonth: 0 });
      refused(await createPod(account), { status: 402, limit: 'spendPerMonth', used: 0, maximum: 0 });
      await setLimits(account, { pods: 1 });
      const { text: metrics } = await fixture.operator.call('GET', '/metrics');
      assert.match(metrics, new RegExp(`berth_quota_used_ratio\\{account="${account.id}",limit="pods"\\} 1`));
      const { body } = await account.call<LimitsView>('GET', '/v2/account/limits');
      const shown = Object.fromEntries(body.limits.map(({ name, ...rest }) => [name, rest]));
      assert.deepEqual(shown['pods'], { used: 1, limit: 1, warning: true });
      assert.deepEqual(shown['imageBytes'], { used: 0, limit: 2000, warning: false });
      assert.equal(
        (await account.call('PATCH', `/v2/accounts/${account.id}/limits`, { pods: 9 })).status,
        403,
      );
    });

    test('GPUs of running pods, also when a stopped one is started again', async () => {
      const account = await fixture.createAccount('gpus');
      await setLimits(account, { gpus: 1 });
      const gpu = { id: 'NVIDIA A40', count: 1 };
      const first = await createRunningPod(account, { gpu });
      const expected = { status: 403, limit: 'gpus', used: 1, maximum: 1 };
      refused(await createPod(account, { gpu }), expected);
      assert.equal((await podAction(account, first.id, 'stop')).status, 200);
      await createRunningPod(account, { gpu });
      refused(await podAction(account, first.id, 'start'), expected);
    });

    test('through GraphQL', async () => {
      const account = await fixture.createAccount('graphql');
      const set = await fixture.operator.graphql<{ updateAccountLimits: { name: string; limit: number }[] }>(
        'mutation ($id: String!) { updateAccountLimits(accountId: $id, limits: [{ name: "pods", limit: ' +
          '0 }]) { name limit } }',
        { id: account.id },
      );
      assert.deepEqual(
        set.body.data?.updateAccountLimits.find(({ name }) => name === 'pods'),
        { name: 'pods', limit: 0 },
      );
      const shown = await account.graphql<{ accountLimits: { name: string; limit: number | null }[] }>(
        '{ accountLimits { name limit } }',
      );
      assert.equal(shown.body.data?.accountLimits.find(({ name }) => name === 'pods')?.limit, 0);
    });

    test('a disabled account has no access and nothing that runs; enabled again it goes on', async () => {
      const account = await fixture.createAccount('disabled');
      const pod = await createRunningPod(account);
      const { id } = await createQueueEndpoint(fixture.server.url, account.key);
      const disabled = await fixture.operator.call('POST', `/v2/accounts/${account.id}/disable`);
      assert.deepEqual([disabled.status, disabled.body['status']], [200, 'disabled']);
      assert.equal((await account.call('GET', '/v2/account')).status, 401);
      assert.equal((await account.call('POST', `/v2/${id}/run`, { input: 1 })).status, 401);
      assert.equal((await fixture.operator.call('POST', `/v2/accounts/${account.id}/enable`)).status, 200);
      assert.equal((await account.call('GET', '/v2/account')).status, 200);
      const stopped = await account.call<{ status: string }>('GET', `/v2/pods/${pod.id}`);
      assert.equal(stopped.body.status, 'EXITED');
      assert.equal((await account.call('POST', `/v2/${id}/run`, { input: 1 })).status, 200);
    });

    test('a deleted account leaves nothing', async () => {
      const account = await fixture.createAccount('deleted');
      await createRunningPod(account);
      const endpoint = await createQueueEndpoint(fixture.server.url, account.key);
      await endpoint.run();
      await account.call('POST', '/v2/network-volumes', { name: 'v', size: 10, dataCenter: 'LOCAL-1' });
      await account.call('POST', '/v2/account/secrets', { name: 'SECRET', value: 'x' });
      await account.call('POST', '/v2/templates', { name: 't', image: 'python:3.12' });
      const removed = await fixture.operator.call('DELETE', `/v2/accounts/${account.id}`);
      assert.equal(removed.status, 204, removed.text);
      assert.equal((await account.call('GET', '/v2/account')).status, 401);
      await waitFor('the account is gone', async () => {
        const { body } = await fixture.operator.call<{ accounts: { id: string }[] }>('GET', '/v2/accounts');
        return body.accounts.every(({ id }) => id !== account.id);
      });
      assert.equal((await fixture.operator.call('DELETE', '/v2/accounts/root')).status, 400);
      assert.equal((await fixture.operator.call('DELETE', `/v2/accounts/${account.id}`)).status, 404);
    });
  });
}

describe('a spending limit', () => {
  const env: Record<string, string> = { BERTH_RATE_LIMITS: 'off', BERTH_PROCESS_ISOLATION: 'none' };
  const received: { body: string; signature: string | undefined }[] = [];
  const receiver = createServer((request, response) => {
    void readText(request).then((body) => {
      received.push({ body, signature: request.headers['x-berth-signature'] as string | undefined });
      response.end();
    });
  });
  const folder = mkdtempSync(join(tmpdir(), 'berth-spending-'));
  before(async () => {
    env['BERTH_CONFIG'] = join(folder, 'berth.yaml');
    writeFileSync(env['BERTH_CONFIG'], 'prices: { cpu: { cpu3c: 180 } }\n');
    await once(receiver.listen(0, '127.0.0.1'), 'listening');
    env['BERTH_LIMITS_WEBHOOK'] = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
  });
  after(() => {
    receiver.close();
    rmSync(folder, { recursive: true });
  });
  const fixture = serverFixture('sqlite', env);

  test('calls the webhook at 80 % and when it is reached, and is shown', async () => {
    const account = await fixture.createAccount('spender');
    const spending = async (): Promise<LimitsView['limits'][number]> => {
      const { body } = await account.call<LimitsView>('GET', '/v2/account/limits');
      return body.limits.find(({ name }) => name === 'spendPerMonth') ?? assert.fail(JSON.stringify(body));
    };
    const pod = await createRunningPod(account);
    await waitFor('the pod has cost something', async () => (await spending()).used > 0);
    // Then nothing more is spent.
    assert.equal((await account.call('DELETE', `/v2/pods/${pod.id}`)).status, 204);
    const { used } = await spending();
    assert.equal((await spending()).warning, false);
    // Spending is checked at the start, and every 30 seconds.
    const restartWith = async (spendPerMonth: number): Promise<void> => {
      const path = `/v2/accounts/${account.id}/limits`;
      const { status, text } = await fixture.operator.call('PATCH', path, { spendPerMonth });
      assert.equal(status, 200, text);
      await fixture.restart();
    };
    const events = (): string[] => received.map(({ body }) => (JSON.parse(body) as { event: string }).event);
    await restartWith(used / 0.9);
    await waitFor('the warning', () => events().length === 1);
    assert.equal((await spending()).warning, true);
    await restartWith(used / 2);
    await waitFor('the end', () => events().length === 2);
    assert.deepEqual(events(), ['spend.warning', 'spend.reached']);
    const [warning] = received.map(({ body }) => JSON.parse(body) as Record<string, unknown>);
    assert.deepEqual(
      [warning?.['accountId'], warning?.['accountName'], warning?.['spent'], warning?.['limit']],
      [account.id, 'spender', used, used / 0.9],
    );
    for (const { signature } of received) assert.match(signature ?? '', /./);
    const { status, body } = await createPod(account);
    assert.deepEqual([status, (body as unknown as Problem).limit], [402, 'spendPerMonth']);
  });
});

describe('the deletion of an account', () => {
  test('that a crash interrupts is finished after the next start', async () => {
    const database = await createTestDatabase('sqlite');
    const env = { BERTH_RATE_LIMITS: 'off', BERTH_PROCESS_ISOLATION: 'none' };
    let server = await startServerProcess(database, env);
    try {
      const { body: account } = await server
        .client()
        .call<{ id: string; key: string }>('POST', '/v2/accounts', { name: 'doomed' });
      const client = server.client(account.key);
      const pod = await createRunningPod(client);
      const endpoints = await Promise.all([1, 2, 3].map(() => createQueueEndpoint(server.url, account.key)));
      await Promise.all(endpoints.map((endpoint) => endpoint.run()));
      const volume = { name: 'v', size: 10, dataCenter: 'LOCAL-1' };
      assert.equal((await client.call('POST', '/v2/network-volumes', volume)).status, 201);

      const removal = server
        .client()
        .call('DELETE', `/v2/accounts/${account.id}`)
        .catch(() => undefined);
      await waitFor(
        'its keys stop working',
        async () => (await client.call('GET', '/v2/account')).status === 401,
      );
      await server.kill();
      await removal;

      server = await startServerProcess(database, env);
      await waitFor(
        'the account is gone',
        async () => {
          const { body } = await server.client().call<{ accounts: { id: string }[] }>('GET', '/v2/accounts');
          return body.accounts.every(({ id }) => id !== account.id);
        },
        60_000,
      );
      assert.deepEqual(processesOfInstance(pod.id), []);
      for (const { id } of endpoints)
        assert.equal((await server.client().call('GET', `/v2/${id}/health`)).status, 404);
    } finally {
      await server.stop();
      await database.drop();
    }
  });
});
