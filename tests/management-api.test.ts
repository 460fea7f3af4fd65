import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { createQueueEndpoint } from '../packages/testing/src/queue-endpoint-client.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';
import { DATABASES } from '../packages/testing/src/test-database.ts';

interface AuditPage {
  entries: {
    id: number;
    action: string;
    resource: string;
    resourceId: string;
    accountId: string;
    keyName: string;
  }[];
  pagination: { nextCursor: string | null; hasNextPage: boolean };
}
interface Files {
  files: { name: string; kind: string; size: number }[];
  pagination: { nextCursor: string | null };
}
interface PodCheck {
  ok: boolean;
  problem: { status: number; detail: string; limit?: string } | null;
  dataCenterId: string | null;
  costPerHour: number | null;
}

const folder = mkdtempSync(join(tmpdir(), 'berth-management-'));
const PRICES = join(folder, 'berth.yaml');
writeFileSync(PRICES, 'prices: { gpu: { NVIDIA A40: 2 } }\n');
after(() => rmSync(folder, { recursive: true }));

for (const kind of DATABASES) {
  describe(`what the console manages, on ${kind}`, () => {
    const fixture = serverFixture(kind, {
      BERTH_RATE_LIMITS: 'off',
      BERTH_PROCESS_ISOLATION: 'none',
      BERTH_GPUS: '2x NVIDIA A40',
      BERTH_CONFIG: PRICES,
    });

    /** With any body and headers, as a browser sends files. */
    const send = (account: TestAccount, method: string, path: string, body?: string, type?: string) =>
      fetch(`${fixture.server.url}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${account.key}`,
          ...(type !== undefined && { 'content-type': type }),
        },
        ...(body !== undefined && { body }),
      });

    test('a pod is checked without being created', async () => {
      const ann = await fixture.createAccount('check');
      const check = async (body: object): Promise<PodCheck> => {
        const {
          status,
          body: answer,
          text,
        } = await ann.call<PodCheck>('POST', '/v2/pods/check', {
          name: 'tried',
          image: 'local/shell',
          ...body,
        });
        assert.equal(status, 200, text);
        return answer;
      };
      const gpu = { id: 'NVIDIA A40', count: 2 };
      const good = await check({ gpu });
      assert.deepEqual(
        { ok: good.ok, problem: good.problem, place: good.dataCenterId, cost: good.costPerHour },
        { ok: true, problem: null, place: 'LOCAL-1', cost: 4 },
      );
      const { pods } = (await ann.call<{ pods: unknown[] }>('GET', '/v2/pods')).body;
      assert.deepEqual(pods, []);
      const audit = (await ann.call<AuditPage>('GET', '/v2/audit?resource=pod')).body;
      assert.deepEqual(audit.entries, []);

      const tooMany = await check({ gpu: { ...gpu, count: 3 } });
      assert.equal(tooMany.ok, false);
      assert.equal(tooMany.problem?.status, 400);
      const created = await ann.call<{ detail: string }>('POST', '/v2/pods', {
        name: 'tried',
        image: 'local/shell',
        gpu: { ...gpu, count: 3 },
      });
      assert.equal(created.body.detail, tooMany.problem.detail);

      const lost = await check({ gpu, mounts: { network: [{ volumeId: 'none', path: '/data' }] } });
      assert.match(lost.problem?.detail ?? '', /network volume "none" does not exist/);
      await fixture.operator.call('PATCH', `/v2/accounts/${ann.id}/limits`, { pods: 0 });
      assert.deepEqual(
        [(await check({ gpu })).problem?.status, (await check({ gpu })).problem?.limit],
        [403, 'pods'],
      );
      const malformed = await ann.call('POST', '/v2/pods/check', { image: 'local/shell', gpu });
      assert.equal(malformed.status, 422);
    });

    test('the audit log is searched by actor, action, resource, time and account', async () => {
      const ann = await fixture.createAccount('searcher');
      const search = async (query: string, client: Pick<TestAccount, 'call'> = ann): Promise<AuditPage> => {
        const { status, body, text } = await client.call<AuditPage>('GET', `/v2/audit?${query}`);
        assert.equal(status, 200, text);
        return body;
      };
      for (const name of ['one', 'two', 'three'])
        await ann.call('POST', '/v2/account/secrets', { name, value: 'hidden' });
      const secrets = await search('resource=secret&action=create');
      assert.equal(secrets.entries.length, 3);
      assert.equal(secrets.entries[0]?.keyName, 'first key');
      const [newest, middle] = secrets.entries;

      const paged = await search('resource=secret&limit=2');
      assert.deepEqual([paged.entries.length, paged.pagination.hasNextPage], [2, true]);
      const rest = await search(`resource=secret&limit=2&cursor=${paged.pagination.nextCursor}`);
      assert.deepEqual([rest.entries.length, rest.pagination], [1, { nextCursor: null, hasNextPage: false }]);

      assert.equal((await search(`resourceId=${middle?.resourceId}`)).entries.length, 1);
      assert.equal((await search('actor=system')).entries.length, 0);
      assert.equal((await search('to=2001-01-01T00:00:00Z')).entries.length, 0);
      assert.equal((await search('from=2001-01-01T00:00:00Z&resource=secret')).entries.length, 3);
      const foreign = await ann.call('GET', '/v2/audit?account=root');
      assert.equal(foreign.status, 403);
      const all = await search('account=all&resource=secret', fixture.operator);
      assert.equal(all.entries[0]?.id, newest?.id);
      assert.equal(all.entries[0].accountId, ann.id);
      assert.equal((await ann.call('GET', '/v2/audit?from=soon')).status, 422);
      assert.equal((await ann.call('GET', '/v2/audit?cursor=0')).status, 422);
    });

    test('files of a volume are uploaded, listed, downloaded and deleted', async () => {
      const ann = await fixture.createAccount('files');
      const made = await ann.call<{ id: string }>('POST', '/v2/network-volumes', {
        name: 'data',
        size: 10,
        dataCenter: 'LOCAL-1',
      });
      const volume = `/v2/network-volumes/${made.body.id}`;
      const content = (path: string): string => `${volume}/files/content?path=${encodeURIComponent(path)}`;
      const upload = (path: string, bytes: string, replace = false) =>
        send(
          ann,
          'PUT',
          `${content(path)}${replace ? '&replace=true' : ''}`,
          bytes,
          'application/octet-stream',
        );
      const list = async (path: string, query = ''): Promise<Files> => {
        const { status, body, text } = await ann.call<Files>(
          'GET',
          `${volume}/files?path=${encodeURIComponent(path)}${query}`,
        );
        assert.equal(status, 200, text);
        return body;
      };
      const name = 'weights "ü" é.bin';
      assert.equal((await upload(`models/${name}`, 'abc')).status, 201);
      assert.equal((await upload(`models/${name}`, 'other')).status, 409);
      assert.equal((await upload(`models/${name}`, 'newer', true)).status, 201);
      assert.equal((await upload('empty', '')).status, 201);
      assert.equal((await ann.call('POST', `${volume}/folders`, { path: 'later' })).status, 201);
      assert.equal((await ann.call('POST', `${volume}/folders`, { path: 'later' })).status, 409);
      assert.deepEqual(
        (await list('')).files.map(({ name: found, kind: what, size }) => [found, what, size]),
        [
          ['empty', 'file', 0],
          ['later', 'folder', 0],
          ['models', 'folder', 0],
        ],
      );
      const page = await list('', '&limit=2');
      const next = await list('', `&limit=2&cursor=${page.pagination.nextCursor}`);
      assert.deepEqual([...page.files, ...next.files].map((file) => file.name).sort(), [
        'empty',
        'later',
        'models',
      ]);
      assert.deepEqual(
        (await list('/models/')).files.map((file) => file.name),
        [name],
      );

      const downloaded = await send(ann, 'GET', content(`models/${name}`));
      assert.equal(await downloaded.text(), 'newer');
      assert.equal(downloaded.headers.get('content-length'), '5');
      assert.match(
        downloaded.headers.get('content-disposition') ?? '',
        /^attachment; filename="weights _.*UTF-8''weights%20%22%C3%BC/,
      );
      assert.equal(await (await send(ann, 'GET', content('empty'))).text(), '');

      // A pod may put links into a volume: none leads out of it.
      const files = join(fixture.database.data, 'volumes', made.body.id);
      writeFileSync(join(fixture.database.data, 'secret.txt'), 'of the server');
      symlinkSync(join(fixture.database.data, 'secret.txt'), join(files, 'leak'));
      symlinkSync(fixture.database.data, join(files, 'out'));
      mkdirSync(join(files, 'tree', 'deep'), { recursive: true });
      symlinkSync(fixture.database.data, join(files, 'tree', 'deep', 'out'));
      for (const path of ['leak', 'out/secret.txt', '../secret.txt', 'models/../../secret.txt'])
        assert.ok([400, 404].includes((await send(ann, 'GET', content(path))).status), path);
      assert.notEqual((await upload('out/planted', 'x')).status, 201);

      const remove = async (path: string, query = ''): Promise<number> =>
        (await ann.call('DELETE', `${volume}/files?path=${encodeURIComponent(path)}${query}`)).status;
      assert.equal(await remove('models'), 409);
      assert.equal(await remove('models', '&recursive=true'), 204);
      assert.equal(await remove('tree', '&recursive=true'), 204);
      assert.equal(await remove('out', '&recursive=true'), 404);
      assert.equal(await remove('later'), 204);
      assert.equal(await remove('empty'), 204);
      assert.equal(await remove('empty'), 404);
      assert.equal((await ann.call('GET', `${volume}/files?path=gone`)).status, 404);
      assert.equal((await ann.call('GET', `${volume}/files?cursor=!`)).status, 422);

      const other = await fixture.createAccount('files of nobody');
      assert.equal((await other.call('GET', `${volume}/files`)).status, 404);
      const key = await ann.call<{ key: string }>('POST', '/v2/account/api-keys', {
        name: 'reader',
        access: 'READ_ONLY',
      });
      const reader = { ...fixture.client(key.body.key), id: ann.id, key: key.body.key };
      assert.equal((await reader.call('GET', `${volume}/files`)).status, 200);
      assert.equal((await send(reader, 'PUT', content('x'), 'x', 'application/octet-stream')).status, 403);
    });

    test('costs of all accounts and as CSV', async () => {
      const { body, status } = await fixture.operator.call<{ records: { accountName: string }[] }>(
        'GET',
        '/v2/billing/accounts?lastN=2',
      );
      assert.equal(status, 200);
      assert.ok(body.records.some(({ accountName }) => accountName === 'files'));
      const ann = await fixture.createAccount('payer');
      await ann.call('POST', '/v2/network-volumes', { name: 'paid', size: 10, dataCenter: 'LOCAL-1' });
      for (const by of ['kind', 'resource']) {
        const csv = await send(ann, 'GET', `/v2/billing/export?by=${by}&lastN=1`);
        assert.match(csv.headers.get('content-type') ?? '', /^text\/csv/);
        const [names, line] = (await csv.text()).split('\r\n');
        assert.match(names ?? '', /^startTime,endTime,accountId,kind,resourceId,/);
        assert.match(line ?? '', new RegExp(`,${ann.id},volume,`));
      }
      assert.equal((await send(ann, 'GET', '/v2/billing/export?by=account')).status, 403);
      assert.equal((await send(ann, 'GET', '/v2/billing/export?by=nothing')).status, 400);
      assert.equal((await ann.call('GET', '/v2/billing/accounts')).status, 403);
    });

    test('an operator sees the whole system', async () => {
      const ann = await fixture.createAccount('waiting');
      const endpoint = await createQueueEndpoint(fixture.server.url, ann.key);
      for (let job = 0; job < 3; job += 1)
        await ann.call('POST', `/v2/${endpoint.id}/run`, { input: { job } });
      const { status, body, text } = await fixture.operator.call<{
        database: string;
        server: { leading: boolean };
        dataCenters: { id: string; gpus: { id: string; total: number }[] }[];
        queue: {
          queued: number;
          oldestWait: number | null;
          longest: { endpointId: string; queued: number }[];
        };
        checks: { ranAt: string; results: { check: string; ok: boolean }[] };
      }>('GET', '/v2/system');
      assert.equal(status, 200, text);
      assert.equal(body.database, kind);
      assert.equal(body.server.leading, true);
      assert.deepEqual(
        body.dataCenters.find(({ id }) => id === 'LOCAL-1')?.gpus.map(({ total }) => total),
        [2],
      );
      assert.equal(body.queue.queued, 3);
      assert.ok((body.queue.oldestWait ?? -1) >= 0);
      assert.equal(body.queue.longest.find(({ endpointId }) => endpointId === endpoint.id)?.queued, 3);
      assert.ok(body.checks.results.find(({ check }) => check === 'node')?.ok);
      const again = await fixture.operator.call<typeof body>('GET', '/v2/system');
      assert.equal(again.body.checks.ranAt, body.checks.ranAt);
      assert.equal((await ann.call('GET', '/v2/system')).status, 403);
    });

    test('an account sees its own in numbers, as far as its key may', async () => {
      interface Overview {
        endpoints: number;
        jobs: { inQueue: number; inProgress: number };
        active: { id: string; jobs: { inQueue: number } }[];
        pods: { total: number; byStatus: Record<string, number> };
      }
      const ann = await fixture.createAccount('counted');
      const endpoint = await createQueueEndpoint(fixture.server.url, ann.key);
      for (let job = 0; job < 2; job += 1)
        await ann.call('POST', `/v2/${endpoint.id}/run`, { input: { job } });
      const { status, body } = await ann.call<Overview>('GET', '/v2/account/overview');
      assert.equal(status, 200);
      assert.deepEqual([body.endpoints, body.jobs], [1, { inQueue: 2, inProgress: 0 }]);
      assert.deepEqual(
        body.active.map(({ id, jobs }) => [id, jobs.inQueue]),
        [[endpoint.id, 2]],
      );
      assert.deepEqual([body.pods.total, body.pods.byStatus], [0, {}]);
      const key = await ann.call<{ key: string }>('POST', '/v2/account/api-keys', {
        name: 'no jobs',
        access: 'RESTRICTED',
        scopes: { rest: 'READ' },
      });
      assert.equal(key.status, 201, key.text);
      const limited = await fixture.client(key.body.key).call<Overview>('GET', '/v2/account/overview');
      assert.deepEqual([limited.status, limited.body.jobs.inQueue, limited.body.active], [200, 0, []]);
      const other = await (await fixture.createAccount('beside')).call<Overview>(
        'GET',
        '/v2/account/overview',
      );
      assert.equal(other.body.endpoints, 0);
    });
  });
}
