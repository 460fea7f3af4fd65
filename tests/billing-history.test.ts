import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createApiClient } from '../packages/testing/src/api-client.ts';
import type { ApiClient } from '../packages/testing/src/api-client.ts';
import { validatingClient, loadOpenApiContract } from '../packages/testing/src/openapi-contract.ts';
import { DATABASES, createTestDatabase } from '../packages/testing/src/test-database.ts';
import type { TestDatabase } from '../packages/testing/src/test-database.ts';
import {
  podAction,
  getPod,
  processesOfInstance,
  createRunningPod,
} from '../packages/testing/src/pod-client.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../packages/testing/src/server-process.ts';
import { deployHandler, listWorkers } from '../packages/testing/src/deploy-handler.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

const PRICES = `prices:
  gpu: { NVIDIA GeForce RTX 4090: { secure: 360, serverless: 720 } }
  cpu: { cpu3c: 180 }
  disk: { container: 7.3, volume: 73, stoppedVolume: 146, networkVolume: 730, highPerformanceVolume: 949 }
`;

export interface V2History {
  records: (Record<string, number> & Record<string, string>)[];
  metadata: {
    query: Record<string, string | null>;
    recordCount: number;
    totals: Record<string, number>;
  } & Record<string, number>;
}
type V1Records = {
  amount: number;
  time: string;
  timeBilledMs: number;
  diskSpaceBilledGb: number;
  podId?: string;
  endpointId?: string;
  gpuTypeId?: string;
}[];

for (const kind of DATABASES) {
  describe(`billing, on ${kind}`, () => {
    let place: TestDatabase;
    let server: ServerProcess;
    let client: ApiClient;
    const env = (): Record<string, string> => ({
      BERTH_RATE_LIMITS: 'off',
      BERTH_CONFIG: join(place.data, 'berth.yaml'),
    });
    const start = async (): Promise<void> => {
      server = await startServerProcess(place, env());
      client = validatingClient(
        createApiClient(server.url, server.key),
        await loadOpenApiContract(server.client()),
      );
    };
    before(async () => {
      place = await createTestDatabase(kind);
      writeFileSync(join(place.data, 'berth.yaml'), PRICES);
      await start();
    });
    after(async () => {
      await server.stop();
      await place.drop();
    });
    const get = async <T>(path: string): Promise<T> => {
      const { status, body, text } = await client.call<T>('GET', path);
      assert.equal(status, 200, text);
      return body;
    };

    describe('of each kind of resource', { concurrency: true }, () => {
      test('a pod pays for its time and disks while it runs, and for its volume while stopped', async () => {
        const { id } = await createRunningPod(client, {
          gpu: { id: 'NVIDIA GeForce RTX 4090', count: 1 },
          disk: 10,
          mounts: { persistent: { size: 10, path: '/data' } },
        });
        const open = await waitFor('a second is counted', async () => {
          const [record] = await get<V1Records>(`/v1/billing/pods?podId=${id}&grouping=podId`);
          return record !== undefined && record.timeBilledMs >= 1000 && record;
        });
        assert.equal(open.podId, id);
        assert.equal(open.diskSpaceBilledGb, 20);
        const seen = (await getPod(client, id)).startedAt ?? '';
        const stopped = await podAction(client, id, 'stop');
        assert.equal(stopped.body.status, 'EXITED');
        const ended = Date.now();
        const [record] = await get<V1Records>(`/v1/billing/pods?podId=${id}&grouping=podId`);
        const seconds = (record?.timeBilledMs ?? 0) / 1000;
        assert.ok(Math.abs(seconds - (ended - Date.parse(seen)) / 1000) < 2, `${seconds} s billed`);
        const { records, metadata } = await get<V2History>(`/v2/billing/pods?podId=${id}`);
        assert.equal(records.length, 1);
        assert.deepEqual(
          [metadata.recordCount, metadata['uniquePodCount'], metadata.query['podId']],
          [1, 1, id],
        );
        assert.equal(records[0]?.['cpuAmount'], 0);
        assert.equal(records[0]['gpuAmount'], seconds / 10);
        assert.ok((records[0]['diskAmount'] ?? 0) >= seconds * (1.1 / 3600) - 1e-6);
        await waitFor(
          'the stopped disk goes on',
          async () =>
            ((await get<V2History>(`/v2/billing/pods?podId=${id}`)).records[0]?.['diskAmount'] ?? 0) >
            (records[0]?.['diskAmount'] ?? 0),
        );
        assert.equal((await client.call('DELETE', `/v2/pods/${id}`)).status, 204);
        const last = await get<V2History>(`/v2/billing/pods?podId=${id}`);
        assert.equal(last.records[0]?.['gpuAmount'], seconds / 10);
      });

      test('an idle volume goes on paying, more when it grows, and no more when it is gone', async () => {
        const make = async (type: string): Promise<string> =>
          (
            await client.call<{ id: string }>('POST', '/v2/network-volumes', {
              name: 'v',
              size: 10,
              dataCenter: 'LOCAL-1',
              type,
            })
          ).body.id;
        const [id, fast] = [await make('STANDARD'), await make('HIGH_PERFORMANCE')];
        const history = (): Promise<V2History> =>
          get<V2History>(`/v2/billing/network-volumes?networkVolumeId=${id}`);
        await waitFor(
          'a second is counted',
          async () => ((await history()).metadata.totals['standardAmount'] ?? 0) >= 10 / 3600,
        );
        assert.equal((await client.call('PATCH', `/v2/network-volumes/${id}`, { size: 20 })).status, 200);
        const { standardAmount: before = 0 } = (await history()).metadata.totals;
        await waitFor(
          'another is counted',
          async () => ((await history()).metadata.totals['standardAmount'] ?? 0) >= before + 20 / 3600,
        );
        const [record] = await get<(V1Records[number] & Record<string, number>)[]>(
          '/v1/billing/networkvolumes?bucketSize=year',
        );
        assert.deepEqual(
          [record?.diskSpaceBilledGb, record?.['highPerformanceStorageDiskSpaceBilledGb']],
          [30, 10],
        );
        assert.ok(
          (record?.['highPerformanceStorageAmount'] ?? 0) > 0 &&
            (record?.amount ?? 0) > (record?.['highPerformanceStorageAmount'] ?? 0),
        );
        for (const one of [id, fast])
          assert.equal((await client.call('DELETE', `/v2/network-volumes/${one}`)).status, 204);
        const after = await history();
        assert.equal(
          (await get<V2History>(`/v2/billing/networkvolumes?networkVolumeId=${id}`)).metadata.totals[
            'totalAmount'
          ],
          after.metadata.totals['totalAmount'],
          'the other spelling is the same',
        );
        assert.equal(after.metadata['uniqueNetworkVolumeCount'], 1);
        const ended = Date.now();
        await waitFor('time goes by', async () => Date.now() - ended > 1_500);
        assert.deepEqual((await history()).metadata.totals, after.metadata.totals);
      });

      test('a worker pays from its start to its end, and its endpoint’s history outlives it', async () => {
        const endpointId = await deployHandler(
          client,
          'billed',
          'export default async (job: { input: unknown }) => job.input;',
          {
            workers: { min: 0, max: 1, idleTimeout: 1 },
            scaling: { type: 'QUEUE_DELAY', queueDelay: 1 },
            disk: 5,
          },
        );
        const answer = await server
          .client()
          .call<{ status: string }>('POST', `/v2/${endpointId}/runsync?wait=60000`, { input: 1 });
        assert.equal(answer.body.status, 'COMPLETED', answer.text);
        await waitFor(
          'its worker has left',
          async () => (await listWorkers(client, endpointId)).length === 0,
        );
        const settled = await waitFor('its end is settled', async () => {
          const one = await get<V1Records>(`/v1/billing/endpoints?endpointId=${endpointId}`);
          // What still runs pays for another second meanwhile.
          await new Promise((resolve) => setTimeout(resolve, 1_100));
          const two = await get<V1Records>(`/v1/billing/endpoints?endpointId=${endpointId}`);
          return one[0] !== undefined && one[0].timeBilledMs === two[0]?.timeBilledMs && one[0];
        });
        assert.equal(settled.endpointId, endpointId);
        const seconds = settled.timeBilledMs / 1000;
        assert.ok(seconds >= 1 && seconds < 60, `${seconds} s`);
        const { records, metadata } = await get<V2History>(
          `/v2/billing/serverless?serverlessId=${endpointId}&lastN=1&bucketSize=month`,
        );
        assert.deepEqual(
          [
            records[0]?.['serverlessId'],
            records[0]?.['cpuAmount'],
            records[0]?.['gpuAmount'],
            records[0]?.['feeAmount'],
            metadata['uniqueServerlessCount'],
          ],
          [endpointId, seconds / 10, 0, 0, 1],
        );
        const [byWorker] = await get<V1Records>(
          `/v1/billing/endpoints?grouping=podId&endpointId=${endpointId}&dataCenterId=LOCAL-1,ELSEWHERE`,
        );
        assert.ok(byWorker?.podId !== undefined && byWorker.podId !== endpointId);
        for (const none of [
          'dataCenterId=ELSEWHERE',
          'imageName=other',
          'templateId=other',
          'gpuTypeId=NVIDIA%20A40',
        ])
          assert.deepEqual(await get(`/v1/billing/endpoints?endpointId=${endpointId}&${none}`), []);
        const [byGpu] = await get<V1Records>(`/v1/billing/endpoints?grouping=gpuTypeId&bucketSize=year`);
        assert.equal(byGpu?.gpuTypeId, undefined, 'it has none');
        assert.equal((await client.call('DELETE', `/v2/serverless/${endpointId}`)).status, 204);
        assert.deepEqual(await get(`/v1/billing/endpoints?endpointId=${endpointId}`), [settled]);
      });

      test('workers of an endpoint that is removed pay no longer', async () => {
        const endpointId = await deployHandler(client, 'removed', 'export default async () => 1;', {
          workers: { min: 1, max: 1 },
        });
        await waitFor(
          'it has a worker',
          async () => (await get<V1Records>(`/v1/billing/endpoints?endpointId=${endpointId}`)).length > 0,
        );
        assert.equal((await client.call('DELETE', `/v2/serverless/${endpointId}`)).status, 204);
        const ended = Date.now();
        const [before] = await get<V1Records>(`/v1/billing/endpoints?endpointId=${endpointId}`);
        await waitFor('time goes by', async () => Date.now() - ended > 1_500);
        assert.deepEqual(await get<V1Records>(`/v1/billing/endpoints?endpointId=${endpointId}`), [before]);
      });
    });

    test('everything together is the sum of its parts', async () => {
      const [all, pods, serverless, volumes] = await Promise.all(
        ['', '/pods', '/serverless', '/network-volumes'].map((kind) =>
          get<V2History>(`/v2/billing${kind}?lastN=2&bucketSize=day`),
        ),
      );
      const totals = all?.metadata.totals ?? {};
      const parts = Object.entries(totals)
        .filter(([name]) => name !== 'totalAmount')
        .reduce((sum, [, amount]) => sum + amount, 0);
      assert.ok(Math.abs(parts - (totals['totalAmount'] ?? 0)) < 1e-6);
      assert.ok(
        Math.abs(
          (totals['totalAmount'] ?? 0) -
            [pods, serverless, volumes].reduce(
              (sum, history) => sum + (history?.metadata.totals['totalAmount'] ?? 0),
              0,
            ),
        ) < 1e-6,
      );
      assert.deepEqual(
        [totals['podGpuAmount'], totals['serverlessCpuAmount'], totals['storageStandardAmount']],
        [
          pods?.metadata.totals['gpuAmount'],
          serverless?.metadata.totals['cpuAmount'],
          volumes?.metadata.totals['standardAmount'],
        ],
      );
      for (const kind of ['endpoints', 'clusters']) {
        const { records, metadata } = await get<V2History>(`/v2/billing/${kind}?lastN=1`);
        assert.deepEqual([records, metadata.recordCount, metadata.totals['totalAmount']], [[], 0, 0]);
      }
      const { data } = (
        await client.graphql<{ myself: { clientLifetimeSpend: number; currentSpendPerHr: number } }>(
          '{ myself { clientLifetimeSpend currentSpendPerHr } }',
        )
      ).body;
      assert.ok(Math.abs((data?.myself.clientLifetimeSpend ?? 0) - (totals['totalAmount'] ?? 0)) < 1e-6);
      assert.equal(data?.myself.currentSpendPerHr, 0);
    });

    test('a new price holds from the moment that Berth runs with it, also for what runs', async () => {
      const { id, cost } = await createRunningPod(client);
      assert.equal(cost, 360);
      const amounts = async (): Promise<{ amount: number; seconds: number }> => {
        const [[v1], v2] = await Promise.all([
          get<V1Records>(`/v1/billing/pods?podId=${id}`),
          get<V2History>(`/v2/billing/pods?podId=${id}`),
        ]);
        return { amount: v2.records[0]?.['cpuAmount'] ?? 0, seconds: (v1?.timeBilledMs ?? 0) / 1000 };
      };
      await waitFor('two seconds are counted', async () => (await amounts()).seconds >= 2);
      await server.kill();
      writeFileSync(join(place.data, 'berth.yaml'), PRICES.replace('cpu3c: 180', 'cpu3c: 18'));
      await start();
      const first = await waitFor(
        'the price is new',
        async () => (await getPod(client, id)).cost === 36 && amounts(),
      );
      assert.equal(processesOfInstance(id).length > 0, true);
      const later = await waitFor('some is counted at it', async () => {
        const now = await amounts();
        return now.seconds >= first.seconds + 3 && now;
      });
      const [more, seconds] = [later.amount - first.amount, later.seconds - first.seconds];
      assert.ok(more > 0 && more < seconds * 0.02, `${more} for ${seconds} s`);
      assert.ok(later.amount > 0.2, 'what was before costs what it cost');
      const stretches = await get<V1Records>(`/v1/billing/pods?podId=${id}&grouping=gpuTypeId`);
      assert.equal(stretches.length, 1);
      assert.equal((await client.call('DELETE', `/v2/pods/${id}`)).status, 204);
    });

    test('is one’s own account’s alone, and needs a key that may read', async () => {
      const { body: other } = await client.call<{ key: string }>('POST', '/v2/accounts', { name: 'other' });
      const theirs = createApiClient(server.url, other.key);
      for (const path of ['', '/pods', '/serverless', '/network-volumes', '/clusters', '/endpoints']) {
        const { status, body } = await theirs.call<V2History>('GET', `/v2/billing${path}?bucketSize=year`);
        assert.deepEqual([status, body.records], [200, []]);
      }
      const mine = (await get<V2History>('/v2/billing/pods?bucketSize=year')).records[0]?.['podId'] ?? '';
      assert.deepEqual(
        (await theirs.call<V2History>('GET', `/v2/billing/pods?podId=${mine}`)).body.records,
        [],
      );
      for (const path of ['pods', 'endpoints', 'networkvolumes'])
        assert.deepEqual((await theirs.call('GET', `/v1/billing/${path}?bucketSize=year`)).body, []);
      const { body: blind } = await client.call<{ key: string }>('POST', '/v2/account/api-keys', {
        name: 'blind',
        access: 'RESTRICTED',
        scopes: { serverless: 'WRITE' },
      });
      const { body: reader } = await client.call<{ key: string }>('POST', '/v2/account/api-keys', {
        name: 'reader',
        access: 'READ_ONLY',
      });
      for (const path of ['/v1/billing/pods', '/v2/billing', '/v2/billing/clusters']) {
        assert.equal((await createApiClient(server.url, blind.key).call('GET', path)).status, 403, path);
        assert.equal((await createApiClient(server.url, undefined).call('GET', path)).status, 401, path);
        assert.equal((await createApiClient(server.url, reader.key).call('GET', path)).status, 200, path);
        assert.equal((await client.call('POST', path, {})).status, 405, path);
      }
    });

    test('an invalid query gets 400 with a message', async () => {
      const refused = async (
        query: string,
        why: RegExp,
        paths = [
          '/v1/billing/pods',
          '/v1/billing/endpoints',
          '/v1/billing/networkvolumes',
          '/v2/billing',
          '/v2/billing/pods',
          '/v2/billing/serverless',
          '/v2/billing/endpoints',
          '/v2/billing/network-volumes',
          '/v2/billing/clusters',
        ],
      ): Promise<void> => {
        for (const path of paths) {
          const { status, text } = await client.call('GET', `${path}?${query}`);
          assert.equal(status, 400, `${path}?${query}: ${text}`);
          assert.match(text, why);
        }
      };
      await refused('startTime=2026-02-01T00:00:00Z&endTime=2026-01-01T00:00:00Z', /is before startTime/);
      await refused('bucketSize=decade', /hour, day, week, month, year/i);
      await refused('bucketSize=day&bucketSize=week', /bucketSize/);
      await refused('startTime=yesterday', /startTime/);
      await refused('bucketSize=hour&startTime=1990-01-01T00:00:00Z', /at most 10000/);
      await refused('lastN=0', /lastN/, ['/v2/billing', '/v2/billing/pods']);
      await refused('lastN=1.5', /lastN/, ['/v2/billing']);
      await refused('lastN=99999999999999999999', /lastN/, ['/v2/billing']);
      await refused('lastN=3&startTime=2026-02-01T00:00:00Z', /not both/, [
        '/v2/billing',
        '/v2/billing/clusters',
      ]);
      await refused('grouping=color', /grouping/, ['/v1/billing/pods', '/v1/billing/endpoints']);
    });
  });
}
