import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { deployHandler, uploadHandler } from '../packages/testing/src/deploy-handler.ts';
import { FLASH_HANDLER, deployFlash } from '../packages/testing/src/flash-client.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';

const NAMES = {
  'x-flash-app': 'greetings',
  'x-flash-environment': 'production',
  'x-flash-endpoint': 'greetings',
};

/** What the flash client does, in the order in which it does it; the client itself is in clients/. */
describe('an app of flash', { concurrency: false }, () => {
  after(async () => {
    const client = fixture.server.client();
    const { body } = await client.call<{ endpoints: { id: string }[] }>('GET', '/v2/serverless');
    for (const { id } of body.endpoints) await client.call('DELETE', `/v2/serverless/${id}`);
  });
  const fixture = serverFixture('sqlite', { BERTH_RATE_LIMITS: 'off' });
  const call = (
    headers: Record<string, string>,
    operation = 'runsync',
    key = fixture.server.key,
  ): Promise<Response> =>
    fetch(`${fixture.server.url}/v2/flash/${operation}`, {
      method: 'POST',
      headers: { ...headers, authorization: `Bearer ${key}` },
      body: '{"input":{"name":"world"}}',
    });

  test('its workers find the build, and it is called by name', async () => {
    const client = fixture.server.client();
    const image = await uploadHandler(client, 'greeter', FLASH_HANDLER);
    await deployFlash(fixture.operator, {
      app: 'greetings',
      environment: 'production',
      build: 'the build',
      image,
    });
    const answer = (await (await call(NAMES)).json()) as { status: string; output: unknown };
    assert.deepEqual(
      [answer.status, answer.output],
      ['COMPLETED', { input: { name: 'world' }, build: 'the build' }],
      JSON.stringify(answer),
    );
  });

  test('what has another name, another owner or none is not there', async () => {
    const statusOf = async (
      headers: Record<string, string>,
      operation?: string,
      key?: string,
    ): Promise<number> => (await call(headers, operation, key)).status;
    for (const name of Object.keys(NAMES))
      assert.equal(await statusOf({ ...NAMES, [name]: 'other' }), 404, name);
    assert.equal(await statusOf(NAMES, 'runsync', (await fixture.createAccount('stranger')).key), 404);
    assert.equal(await statusOf(NAMES, 'runsync', 'rpa_WRONG'), 401);
    assert.equal(await statusOf({}), 400);
    assert.equal(await statusOf(NAMES, 'nothing'), 404);
  });

  test('the ready workers of a queue endpoint and their last lines can be looked up by id', async () => {
    const client = fixture.server.client();
    const id = await deployHandler(
      client,
      'lines',
      'export default async () => { console.log("here"); return 1; };',
      { workers: { min: 1, max: 1 } },
    );
    assert.equal(
      (await client.call<{ output: number }>('POST', `/v2/${id}/runsync`, { input: 1 })).body.output,
      1,
    );
    const { body } = await client.call<{ workers: { ready: number }; readyWorkers: string[] }>(
      'GET',
      `/v2/${id}/metrics`,
    );
    assert.deepEqual([body.workers.ready, body.readyWorkers.length], [1, 1]);
    const path = `/v1/pod/${body.readyWorkers[0]}/logs`;
    const logs = await fixture.operator.call<{ container: string[]; system: string[] }>('GET', path);
    assert.ok(
      logs.body.container.some((line) => /^\S+Z here$/.test(line)) && logs.body.system.length > 0,
      logs.text,
    );
    assert.equal((await (await fixture.createAccount('other')).call('GET', path)).status, 404);
  });
});
