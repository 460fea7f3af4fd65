import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { runBerth } from '../packages/cloud/src/cli/cli-test-harness.ts';
import { createQueueEndpoint } from '../packages/testing/src/queue-endpoint-client.ts';
import type { QueueEndpointClient } from '../packages/testing/src/queue-endpoint-client.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';

/** Every command that follows from the table of resources, and those of jobs, against a real server. */
describe('the command line and the API agree', () => {
  const stage = serverFixture('sqlite', { BERTH_RATE_LIMITS: 'off' });
  let jobs: QueueEndpointClient;
  before(async () => {
    jobs = await createQueueEndpoint(stage.server.url, stage.server.key);
  });
  const berth = async (...argv: string[]): Promise<{ out: string; err: string; json: unknown }> => {
    const env = { BERTH_URL: stage.server.url, BERTH_API_KEY: stage.server.key };
    const { code, out, err } = await runBerth(argv, { env });
    assert.equal(code, 0, `${argv.join(' ')}: ${err}`);
    return { out, err, json: argv.includes('-o') ? undefined : (JSON.parse(out) as unknown) };
  };

  test('lists are shown as tables without an empty column of what the API calls otherwise', async () => {
    for (const list of ['gpu', 'cpu', 'datacenter', 'endpoint']) {
      const { out } = await berth(list, 'ls', '-o', 'table');
      assert.ok(out.split('\n').length > 2, out);
      assert.doesNotMatch(out, /undefined|NaN/, out);
    }
    for (const list of ['template', 'secret', 'registry', 'cluster', 'image']) await berth(list, 'ls');
    assert.match((await berth('gpu', 'ls', '-o', 'table')).out, / virtual /);
    await berth('billing');
    await berth('billing', 'serverless', '--by', 'hour', '--last', '3');
    await berth('webhook', 'ls', jobs.id);
    await berth('image', 'prune');
    await berth('ps', '-o', 'name');
  });

  test('resources are created, changed and deleted', async () => {
    await berth('secret', 'create', '--set', 'name=token', '--set', 'value=v');
    await berth('secret', 'update', 'token', '--set', 'description=for tests');
    assert.match((await berth('secret', 'ls', '-o', 'table')).out, /token {2}for tests/);
    await berth('secret', 'rm', 'token');
    await berth('template', 'create', '--set', 'name=web', '--set', 'image=local/shell', '--set', 'env.A=1');
    await berth('template', 'get', 'web');
    await berth('template', 'rm', 'web');
    await berth('registry', 'create', '--set', 'name=hub', '--set', 'username=u', '--set', 'password=p');
    await berth('registry', 'rm', 'hub');
    assert.partialDeepStrictEqual((await berth('endpoint', 'scale', jobs.id, '--max', '0')).json, { max: 0 });
    await berth('endpoint', 'update', jobs.id, '--set', 'env.B=2');
    await berth('endpoint', 'releases', jobs.id);
    await berth('endpoint', 'get', jobs.id);
  });

  test('jobs are found, cancelled and sent again', async () => {
    const id = await jobs.run({ text: 'fox' });
    assert.equal((await berth('job', 'ls', jobs.id, '--text', 'FOX', '-o', 'name')).out, `${id}\n`);
    assert.partialDeepStrictEqual((await berth('job', 'get', jobs.id, id)).json, { input: { text: 'fox' } });
    assert.partialDeepStrictEqual((await berth('job', 'cancel', jobs.id, id)).json, { done: 1 });
    const again = await berth('job', 'redrive', jobs.id, id, '--input', '{"text": "hen"}');
    assert.partialDeepStrictEqual(again.json, { done: 1, skipped: [] });
    assert.partialDeepStrictEqual((await berth('job', 'cancel', jobs.id, '--all')).json, { done: 1 });
    await berth('job', 'errors', jobs.id);
  });
});
