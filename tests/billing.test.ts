import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { clientOf } from './support/client.ts';
import type { Client } from './support/client.ts';
import { checked, contractOf } from './support/contract.ts';
import { DATABASES, freshDatabase } from './support/databases.ts';
import type { TestDatabase } from './support/databases.ts';
import { act, pod, runningPod } from './support/pods.ts';
import { startServer } from './support/server.ts';
import type { TestServer } from './support/server.ts';
import { until } from './support/serverless.ts';

const PRICES = `prices:
  gpu: { NVIDIA GeForce RTX 4090: { secure: 360, serverless: 720 } }
  cpu: { cpu3c: 180 }
  disk: { container: 7.3, volume: 73, stoppedVolume: 146, networkVolume: 730, highPerformanceVolume: 949 }
`;

export interface V2History {
  records: (Record<string, number> & Record<string, string>)[];
  metadata: { query: Record<string, string | null>; recordCount: number; totals: Record<string, number> } & Record<string, number>;
}
type V1Records = { amount: number; time: string; timeBilledMs: number; diskSpaceBilledGb: number; podId?: string; endpointId?: string; gpuTypeId?: string }[];

for (const kind of DATABASES) {
  describe(`billing, on ${kind}`, () => {
    let place: TestDatabase;
    let server: TestServer;
    let client: Client;
    const env = (): Record<string, string> => ({ BERTH_RATE_LIMITS: 'off', BERTH_CONFIG: join(place.data, 'berth.yaml') });
    const start = async (): Promise<void> => {
      server = await startServer(place, env());
      client = checked(clientOf(server.url, server.key), await contractOf(server.client()));
    };
    before(async () => {
      place = await freshDatabase(kind);
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

    test('a pod pays for its time and its disks while it runs, and for its volume while it is stopped', async () => {
      const { id } = await runningPod(client, { gpu: { id: 'NVIDIA GeForce RTX 4090', count: 1 }, disk: 10, mounts: { persistent: { size: 10, path: '/data' } } });
      const open = await until('a second is counted', async () => {
        const [record] = await get<V1Records>(`/v1/billing/pods?podId=${id}&grouping=podId`);
        return record !== undefined && record.timeBilledMs >= 1000 && record;
      });
      assert.equal(open.podId, id);
      assert.equal(open.diskSpaceBilledGb, 20);
      const seen = (await pod(client, id)).startedAt ?? '';
      const stopped = await act(client, id, 'stop');
      assert.equal(stopped.body.status, 'EXITED');
      const ended = Date.now();
      const [record] = await get<V1Records>(`/v1/billing/pods?podId=${id}&grouping=podId`);
      const seconds = (record?.timeBilledMs ?? 0) / 1000;
      assert.ok(Math.abs(seconds - (ended - Date.parse(seen)) / 1000) < 2, `${seconds} s billed`);
      const { records, metadata } = await get<V2History>(`/v2/billing/pods?podId=${id}`);
      assert.equal(records.length, 1);
      assert.deepEqual([metadata.recordCount, metadata['uniquePodCount'], metadata.query['podId']], [1, 1, id]);
      assert.equal(records[0]?.['cpuAmount'], 0);
      assert.equal(records[0]['gpuAmount'], seconds / 10);
      assert.ok((records[0]['diskAmount'] ?? 0) >= seconds * (1.1 / 3600) - 1e-6);
      await until('the stopped disk goes on', async () => ((await get<V2History>(`/v2/billing/pods?podId=${id}`)).records[0]?.['diskAmount'] ?? 0) > (records[0]?.['diskAmount'] ?? 0));
      assert.equal((await client.call('DELETE', `/v2/pods/${id}`)).status, 204);
      const last = await get<V2History>(`/v2/billing/pods?podId=${id}`);
      assert.equal(last.records[0]?.['gpuAmount'], seconds / 10);
    });
  });
}
