import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTestDatabase } from '../packages/testing/src/test-database.ts';
import { processEngineFixture } from '../packages/testing/src/engine-fixture.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import { deployHandler, listWorkers } from '../packages/testing/src/deploy-handler.ts';
import { parseLogLines } from '../packages/testing/src/server-fixture.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

test('two data centers of one engine: after a crash each takes up its own workers, and none is taken for a stray', {
  timeout: 120_000,
}, async () => {
  const { instancesOf } = processEngineFixture();
  const place = await createTestDatabase('sqlite');
  const env = { BERTH_RATE_LIMITS: 'off', BERTH_DATA_CENTERS: 'LOCAL-1,LOCAL-2,LOCAL-3' };
  let server = await startServerProcess(place, env);
  const { port } = new URL(server.url);
  const client = server.client();
  const endpoints = await Promise.all(
    ['LOCAL-1', 'LOCAL-2', 'LOCAL-3'].map((dataCenterId) =>
      deployHandler(
        client,
        dataCenterId.toLowerCase(),
        'export default async (job: { input: unknown }) => job.input;',
        { dataCenterIds: [dataCenterId], workers: { min: 2, max: 2 } },
      ),
    ),
  );
  for (const id of endpoints)
    await waitFor(
      'its workers are ready',
      async () => (await listWorkers(client, id)).filter(({ status }) => status === 'IDLE').length === 2,
      60_000,
    );
  const before = await Promise.all(endpoints.map(instancesOf));
  assert.deepEqual(
    before.map(({ size }) => size),
    [2, 2, 2],
  );
  await server.kill();
  server = await startServerProcess(place, env, ['--port', port]);
  for (const id of endpoints) {
    const done = await server
      .client()
      .call<{ status: string; output: unknown }>('POST', `/v2/${id}/runsync`, { input: id });
    assert.deepEqual([done.body.status, done.body.output], ['COMPLETED', id]);
  }
  assert.deepEqual(await Promise.all(endpoints.map(instancesOf)), before);
  assert.deepEqual(
    parseLogLines(server).filter(({ msg }) => /orphaned|away/.test(String(msg))),
    [],
  );
  for (const id of endpoints) await server.client().call('DELETE', `/v2/serverless/${id}`);
  await server.stop();
  await place.drop();
});
