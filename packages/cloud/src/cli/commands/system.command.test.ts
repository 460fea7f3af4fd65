import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runBerth } from '../cli-test-harness.ts';
import { startFakeApiServer } from '../fake-api-server.ts';

test('system shows the data centers of an installation', async () => {
  const place = { id: 'here', engine: 'docker', isolation: null, cpu: { threads: 8 }, memory: 64 };
  const gpus = [{ id: 'NVIDIA L4', total: 2, free: 1, virtual: true }];
  await using server = await startFakeApiServer({
    'GET /v2/system': { body: { dataCenters: [{ ...place, gpus, pods: 1, workers: 2 }] } },
  });
  const env = { BERTH_URL: server.url, BERTH_API_KEY: 'rpa_MINE' };
  const { out } = await runBerth(['system', '-o', 'table'], { env });
  assert.match(out, /\nhere +docker +- +8 +64 GB +1 of 2 NVIDIA L4 \(virtual\) +1 +2\n/);
});
