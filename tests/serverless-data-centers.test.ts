import assert from 'node:assert/strict';
import { test } from 'node:test';
import { freshDatabase } from './support/databases.ts';
import { processEngine } from './support/engine-under-test.ts';
import { startServer } from './support/server.ts';
import { deploy, until, workersOf } from './support/serverless.ts';
import { logLines } from './support/story.ts';

test('two data centers of one engine: after a crash each takes up its own workers, and none is taken for a stray', {
  timeout: 120_000,
}, async () => {
  const { traces } = processEngine();
  const place = await freshDatabase('sqlite');
  const env = { BERTH_RATE_LIMITS: 'off', BERTH_DATA_CENTERS: 'LOCAL-1,LOCAL-2,LOCAL-3' };
  let server = await startServer(place, env);
  const { port } = new URL(server.url);
  const client = server.client();
  const endpoints = await Promise.all(
    ['LOCAL-1', 'LOCAL-2', 'LOCAL-3'].map((dataCenterId) =>
      deploy(
        client,
        dataCenterId.toLowerCase(),
        'export default async (job: { input: unknown }) => job.input;',
        { dataCenterIds: [dataCenterId], workers: { min: 2, max: 2 } },
      ),
    ),
  );
  for (const id of endpoints)
    await until(
      'its workers are ready',
      async () => (await workersOf(client, id)).filter(({ status }) => status === 'IDLE').length === 2,
      60_000,
    );
  const before = await Promise.all(endpoints.map(traces));
  assert.deepEqual(
    before.map(({ size }) => size),
    [2, 2, 2],
  );
  await server.kill();
  server = await startServer(place, env, ['--port', port]);
  for (const id of endpoints) {
    const done = await server
      .client()
      .call<{ status: string; output: unknown }>('POST', `/v2/${id}/runsync`, { input: id });
    assert.deepEqual([done.body.status, done.body.output], ['COMPLETED', id]);
  }
  assert.deepEqual(await Promise.all(endpoints.map(traces)), before);
  assert.deepEqual(
    logLines(server).filter(({ msg }) => /nobody knows|away/.test(String(msg))),
    [],
  );
  for (const id of endpoints) await server.client().call('DELETE', `/v2/serverless/${id}`);
  await server.stop();
  await place.drop();
});
