import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { deployHandler } from '../packages/testing/src/deploy-handler.ts';
import { readEvents } from '../packages/testing/src/event-reader.ts';
import { startLeaderAndFollower } from '../packages/testing/src/two-servers-fixture.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

type Phases = Record<string, string | null>;
interface Job {
  id: string;
  status: string;
  phases?: Phases;
}

let fixture: Awaited<ReturnType<typeof startLeaderAndFollower>>;
before(async () => {
  fixture = await startLeaderAndFollower();
});
after(async () => {
  await fixture.other.stop();
  await fixture.leader.stop();
  await fixture.place.drop();
});

test('both servers show the start that a job waited for, also when the worker has ended', async () => {
  const [leader, other] = [fixture.leader.client(), fixture.other.client()];
  const endpointId = await deployHandler(leader, 'phases', 'export default () => 1;\n', {
    workers: { min: 0, max: 1 },
  });
  const ran = await other.call<Job>('POST', `/v2/${endpointId}/runsync?wait=60000`, { input: {} });
  assert.equal(ran.body.status, 'COMPLETED', ran.text);
  const phasesAt = async (client: typeof leader): Promise<Phases | undefined> =>
    (await client.call<Job>('GET', `/v2/${endpointId}/status/${ran.body.id}`)).body.phases;
  const shown = await waitFor('all phases are over', async () => {
    const phases = await phasesAt(other);
    return phases !== undefined && Object.values(phases).every((at) => at !== null) && phases;
  });
  assert.deepEqual(Object.keys(shown), [
    'scheduledAt',
    'imageReadyAt',
    'startedAt',
    'connectedAt',
    'firstJobAt',
  ]);
  assert.deepEqual(await phasesAt(leader), shown);
  await leader.call('PATCH', `/v2/serverless/${endpointId}`, { workers: { min: 0, max: 0 } });
  await waitFor('the worker has ended', async () => {
    const { body } = await leader.call<{ workers: unknown[] }>('GET', `/v2/serverless/${endpointId}/workers`);
    return body.workers.length === 0;
  });
  assert.deepEqual(await phasesAt(leader), shown);
  await leader.call('DELETE', `/v2/serverless/${endpointId}`);
});

test('a server shows the start phases of workers of another', async () => {
  const [leader, other] = [fixture.leader.client(), fixture.other.client()];
  const events = await readEvents(fixture.other.url, fixture.other.key);
  const endpointId = await deployHandler(leader, 'told', 'export default () => 1;\n', {
    workers: { min: 0, max: 1 },
  });
  await leader.call('POST', `/v2/${endpointId}/runsync?wait=60000`, { input: {} });
  for (const type of ['endpoint.changed', 'release.created', 'job.changed'])
    await events.waitFor(type, (event) => event.type === type && event['endpointId'] === endpointId);
  await events.waitFor('a worker is ready', (event) => event['state'] === 'ready');
  await leader.call('DELETE', `/v2/serverless/${endpointId}`);
  await events.waitFor('the endpoint is gone', (event) => event.type === 'endpoint.deleted');
  assert.equal((await other.call('GET', `/v2/serverless/${endpointId}`)).status, 404);
  events.close();
});
