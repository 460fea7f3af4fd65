import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { runBerth } from '../packages/cloud/src/cli/cli-test-harness.ts';
import { commands } from '../packages/cloud/src/cli/commands.ts';
import type { OpenApiDocument } from '../packages/cloud/src/http/rest/openapi.ts';
import { createQueueEndpoint } from '../packages/testing/src/queue-endpoint-client.ts';
import type { QueueEndpointClient } from '../packages/testing/src/queue-endpoint-client.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';
import { waitUntilPasses } from '../packages/testing/src/wait-for.ts';
import { COMMAND_OF, REASON_WITHOUT_COMMAND } from './command-line-operations.ts';

const PUBLIC_KEY = `ssh-ed25519 ${Buffer.from(`\0\0\0\x0bssh-ed25519\0\0\0 ${'k'.repeat(32)}`).toString('base64')}`;

/** Every command that follows from the table of resources, and those of jobs, against a real server. */
describe('the command line and the API agree', () => {
  const fixture = serverFixture('sqlite', {
    BERTH_RATE_LIMITS: 'off',
    BERTH_WEBHOOKS_ALLOW_PRIVATE: 'true',
    BERTH_WEBHOOKS_ATTEMPTS: '1',
  });
  let jobs: QueueEndpointClient;
  before(async () => {
    jobs = await createQueueEndpoint(fixture.server.url, fixture.server.key);
  });
  const berth = async (...argv: string[]): Promise<{ out: string; err: string; json: unknown }> => {
    const env = { BERTH_URL: fixture.server.url, BERTH_API_KEY: fixture.server.key };
    const { code, out, err } = await runBerth(argv, { env });
    assert.equal(code, 0, `${argv.join(' ')}: ${err}`);
    return {
      out,
      err,
      json: argv.includes('-o') || argv[1] === 'export' ? undefined : (JSON.parse(out) as unknown),
    };
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

  test('every operation of the API has a command, or a reason why not', async () => {
    const { body } = await fixture.operator.call<OpenApiDocument>('GET', '/v2/openapi.json');
    const operations = Object.values(body.paths).flatMap((path) =>
      Object.values(path).map(({ operationId }) => operationId),
    );
    const known = [...Object.keys(COMMAND_OF), ...Object.keys(REASON_WITHOUT_COMMAND)];
    assert.deepEqual(known.toSorted(), operations.toSorted());
    for (const command of Object.values(COMMAND_OF)) assert.ok(Object.hasOwn(commands, command), command);
  });

  test('what belongs to an account is shown and changed', async () => {
    assert.partialDeepStrictEqual((await berth('whoami')).json, { operator: true });
    assert.match((await berth('webhook', 'secret', '-o', 'yaml')).out, /^secret: whsec_/);
    await berth('session', 'ls');
    await berth('template', 'public');
    await berth('billing', '--accounts');
    assert.match((await berth('billing', '--csv', '-o', 'name')).out, /^startTime,/);
    await berth('delegation', 'ls');
    const [gpu = ''] = (await berth('gpu', 'ls', '-o', 'name')).out.split('\n');
    assert.partialDeepStrictEqual((await berth('gpu', 'get', gpu)).json, { id: gpu });
    const folder = await mkdtemp(join(tmpdir(), 'berth-cli-'));
    await writeFile(join(folder, 'id.pub'), `${PUBLIC_KEY} me@here\n`);
    for (let time = 0; time < 2; time += 1)
      assert.deepEqual((await berth('ssh-key', 'add', join(folder, 'id.pub'))).json, {
        keys: [`${PUBLIC_KEY} me@here`],
      });
    await rm(folder, { recursive: true });
    assert.match((await berth('ssh-key', 'ls', '-o', 'table')).out, /ssh-ed25519 {2}me@here/);
    assert.deepEqual((await berth('ssh-key', 'rm', 'me@here')).json, { keys: [] });
    const { id } = (await berth('key', 'create', '--name', 'once', '--access', 'all')).json as { id: string };
    assert.partialDeepStrictEqual((await berth('key', 'update', id, '--set', 'enabled=false')).json, {
      enabled: false,
    });
    assert.match((await berth('events', '--no-follow')).out, /"type":"ready"/);
  });

  test('endpoints, their workers and their pods are made, measured and rolled back', async () => {
    const fields = {
      name: 'made',
      type: 'QUEUE',
      image: 'local/shell',
      workers: { max: 0 },
      cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
      scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
    };
    const set = Object.entries(fields).flatMap(([name, value]) => [
      '--set',
      `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
    ]);
    await berth('endpoint', 'create', ...set);
    await berth('endpoint', 'update', 'made', '--set', 'env.B=2');
    assert.partialDeepStrictEqual((await berth('endpoint', 'rollback', 'made', '0')).json, { version: 2 });
    await berth('endpoint', 'metrics', 'made', '--range', '2h');
    assert.partialDeepStrictEqual((await berth('worker', 'ls', 'made')).json, { workers: [] });
    await berth('endpoint', 'rm', 'made', '--yes');
    const checked = await berth('pod', 'create', '--name', 'lab', '--check', 'local/shell');
    assert.partialDeepStrictEqual(checked.json, { ok: true });
    await berth('pod', 'create', '--name', 'lab', '--detach', 'local/shell', 'sleep', '60');
    await berth('pod', 'update', 'lab', '--set', 'locked=true');
    assert.partialDeepStrictEqual((await berth('pod', 'get', 'lab')).json, { name: 'lab', locked: true });
    await berth('pod', 'metrics', 'lab');
    await berth('pod', 'update', 'lab', '--set', 'locked=false');
    await berth('pod', 'rm', 'lab', '--yes');
  });

  test('virtual GPUs of pods and workers are called so', async () => {
    const gpu = 'NVIDIA GeForce RTX 4090';
    const pod = await berth('pod', 'create', '--name', 'gpu', '--gpu', gpu, '--detach', 'local/shell');
    assert.partialDeepStrictEqual(pod.json, { gpu: { id: gpu, virtual: true } });
    assert.match((await berth('pod', 'ls', '-o', 'table')).out, / 1 x NVIDIA GeForce RTX 4090 \(virtual\) /);
    await berth('pod', 'rm', 'gpu', '--yes');
    await berth('deploy', 'examples/echo', '--name', 'gpu', '--gpu', gpu, '--min', '1');
    await waitUntilPasses(async () =>
      assert.match((await berth('ps', 'gpu', '-o', 'table')).out, /1 x NVIDIA GeForce RTX 4090 \(virtual\)/),
    );
    await berth('rm', 'gpu', '--yes');
  });

  test('an uploaded folder is deleted when nothing runs it', async () => {
    const { image } = (await berth('deploy', 'examples/echo', '--name', 'gone', '--max', '0')).json as {
      image: string;
    };
    assert.partialDeepStrictEqual((await berth('image', 'prune')).json, { kept: [image] });
    await berth('rm', 'gone', '--yes');
    assert.deepEqual((await berth('image', 'rm', 'gone')).json, { removed: [image], kept: [] });
  });

  test('images that a roll back needs are kept until the endpoint is deleted', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'berth-cli-'));
    const deploy = async (text: string): Promise<string> => {
      await writeFile(join(folder, 'handler.ts'), `export default () => '${text}';\n`);
      const { json } = await berth('deploy', folder, '--name', 'kept', '--max', '0');
      return (json as { image: string }).image;
    };
    const images = [await deploy('one'), await deploy('two')];
    const kept = (await berth('image', 'prune')).json as { kept: string[] };
    for (const image of images) assert.ok(kept.kept.includes(image), JSON.stringify(kept));
    await berth('rm', 'kept', '--yes');
    assert.ok(
      !((await berth('image', 'prune', '--unused-days', '1')).json as { removed: string[] }).removed.length,
    );
    const { removed } = (await berth('image', 'prune')).json as { removed: string[] };
    for (const image of images) assert.ok(removed.includes(image), JSON.stringify(removed));
    await rm(folder, { recursive: true });
  });

  test('a webhook is sent again, and what waits is purged', async () => {
    const id = await jobs.run({}, { webhook: 'http://127.0.0.1:9/' });
    await jobs.run({});
    await berth('job', 'cancel', jobs.id, id);
    const delivery = await waitUntilPasses(async () => {
      const [found] = ((await berth('webhook', 'ls', jobs.id)).json as { deliveries: { id: string }[] })
        .deliveries;
      assert.partialDeepStrictEqual(found, { state: 'failed' });
      return found;
    });
    const again = await berth('webhook', 'redeliver', jobs.id, delivery?.id ?? '');
    assert.partialDeepStrictEqual(again.json, { id: delivery?.id });
    assert.partialDeepStrictEqual((await berth('job', 'purge', jobs.id, '--yes')).json, { removed: 1 });
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

  test('jobs are found, cancelled and sent again', async (context) => {
    const id = await jobs.run({ text: 'fox' });
    assert.equal((await berth('job', 'ls', jobs.id, '--text', 'FOX', '-o', 'name')).out, `${id}\n`);
    assert.partialDeepStrictEqual((await berth('job', 'get', jobs.id, id)).json, { input: { text: 'fox' } });
    assert.partialDeepStrictEqual((await berth('job', 'cancel', jobs.id, id)).json, { done: 1 });
    const again = await berth('job', 'redrive', jobs.id, id, '--input', '{"text": "hen"}');
    assert.partialDeepStrictEqual(again.json, { done: 1, skipped: [] });
    const exported = (await berth('job', 'export', jobs.id, '--text', 'fox')).out;
    const folder = await mkdtemp(join(tmpdir(), 'berth-redrive-'));
    context.after(() => rm(folder, { recursive: true }));
    const file = join(folder, 'edited.jsonl');
    await writeFile(file, exported.replace('fox', 'owl'));
    assert.partialDeepStrictEqual((await berth('job', 'redrive', jobs.id, '--inputs', file)).json, {
      done: 1,
    });
    const patch = ['--text', 'fox', '--status', 'CANCELLED', '--patch', '{"text": "bee"}'];
    assert.partialDeepStrictEqual((await berth('job', 'redrive', jobs.id, ...patch)).json, { done: 1 });
    const texts = (await berth('job', 'export', jobs.id, '--status', 'IN_QUEUE')).out
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { input: { text: string } }).input.text);
    assert.deepEqual(texts, ['bee', 'owl', 'hen']);
    assert.partialDeepStrictEqual((await berth('job', 'cancel', jobs.id, '--all')).json, { done: 3 });
    await berth('job', 'errors', jobs.id);
  });
});
