import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { runBerth as runInProcess } from '../packages/cloud/src/cli/cli-test-harness.ts';
import { createTemporaryFolder } from '../packages/testing/src/temporary-folder.ts';
import type { TemporaryFolder } from '../packages/testing/src/temporary-folder.ts';
import { runBerth } from '../packages/testing/src/berth-command.ts';
import type { CommandResult } from '../packages/testing/src/berth-command.ts';
import { clearedServerFixture } from '../packages/testing/src/cleared-server-fixture.ts';
import { waitUntilPasses } from '../packages/testing/src/wait-for.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';

interface Deployed {
  id: string;
  name: string;
  type: string;
  image: string;
  created: boolean;
  requestUrls: Record<string, string>;
}

interface Endpoint {
  id: string;
  env: Record<string, string>;
  image: string;
  cpu?: { id: string; vcpuCount: number }[];
  gpu: { pools: string[]; excludedTypes: string[]; count: number } | null;
  ports: string[];
  dataCenterIds: string[];
  workers: { min: number; max: number; idleTimeout?: number };
  scaling: { type: string };
}

const HANDLER = 'export default (job) => job.input;\n';

/** No worker is needed for what these tests ask. */
describe('a deployed folder that crashes at its start', () => {
  const fixture = clearedServerFixture();
  const folder = createTemporaryFolder('crash', {
    'handler.js': 'export default () => nothing.at.all;\nwrong;\n',
  });
  after(() => folder.remove());

  test('has its log shown, though no worker runs', async () => {
    const env = { BERTH_URL: fixture.server.url, BERTH_API_KEY: fixture.server.key };
    const deployed = await runBerth(['deploy', folder.path, '--name', 'crash', '--min', '1'], env);
    assert.equal(deployed.code, 0, deployed.stderr);
    // A wait for it ends long before its time is over.
    const waited = await runBerth(['deploy', folder.path, '--name', 'again', '--min', '1', '--wait'], env);
    assert.equal(waited.code, 1);
    assert.match(waited.stderr, /no worker is ready: workers end as soon as .*wrong is not defined\n/);
    await waitUntilPasses(async () => {
      const { code, stdout, stderr } = await runBerth(['logs', 'crash'], env);
      assert.equal(code, 0, stderr);
      assert.match(stdout, /handler\.js:2[^]*ReferenceError: wrong is not defined/);
    });
  });
});

describe('berth deploy', () => {
  const fixture = serverFixture('sqlite', { BERTH_RATE_LIMITS: 'off' });
  let ann: TestAccount;
  let folder: TemporaryFolder;
  const berth = <T = Deployed>(...args: string[]): Promise<CommandResult<T>> =>
    runBerth<T>(args, { BERTH_URL: fixture.server.url, BERTH_API_KEY: ann.key });
  const endpoint = async (id: string): Promise<Endpoint> =>
    (await ann.call<Endpoint>('GET', `/v2/serverless/${id}`)).body;

  before(async () => {
    ann = await fixture.createAccount('ann');
    folder = createTemporaryFolder('My App', {
      'handler.js': HANDLER,
      'node_modules/x/index.js': '',
      '.git/HEAD': '',
    });
  });
  after(() => folder.remove());

  test('makes an endpoint of a folder, under its name, on a CPU, scaled to nothing', async () => {
    const { code, json, stderr } = await berth('deploy', folder.path);
    assert.deepEqual(
      [code, stderr],
      [0, `uploading 2 files, ${HANDLER.length} bytes\nendpoint My App (${json.id}) created\n`],
    );
    assert.deepEqual([json.name, json.type, json.created], ['My App', 'QUEUE', true]);
    assert.match(json.image, new RegExp(`^local/${ann.id}\\.my-app:[0-9a-f]{12}$`));
    assert.equal(json.requestUrls['run'], `${fixture.server.url}/v2/${json.id}/run`);
    const made = await endpoint(json.id);
    assert.deepEqual(
      [
        made.image,
        made.cpu?.map(({ id, vcpuCount }) => `${id}-${vcpuCount}`),
        made.workers,
        made.scaling.type,
      ],
      [json.image, ['cpu3c-2'], { min: 0, max: 3, idleTimeout: 10 }, 'QUEUE_DELAY'],
    );
    const { body } = await ann.call<{ images: { files: number }[] }>('GET', '/v2/images');
    assert.deepEqual(
      body.images.map(({ files }) => files),
      [2],
    );
  });

  test('a second time gives the endpoint a new release and leaves the rest as it is', async () => {
    const first = (
      await berth('deploy', folder.path, '--max', '7', '--idle', '30', '--env', 'A=1', '--env', 'B=x=y')
    ).json;
    folder.write({ 'handler.js': `${HANDLER}// changed\n` });
    const second = await berth('deploy', folder.path, '--env', 'A=2');
    assert.deepEqual([second.json.id, second.json.created], [first.id, false]);
    assert.notEqual(second.json.image, first.image);
    const { workers, env, image } = await endpoint(first.id);
    assert.deepEqual(
      [workers, env, image],
      [{ min: 0, max: 7, idleTimeout: 30 }, { A: '2', B: 'x=y' }, second.json.image],
    );
    const same = await berth('deploy', folder.path);
    assert.equal(same.json.image, second.json.image);
  });

  test('every option reaches the endpoint', async () => {
    const { json } = await berth(
      'deploy',
      folder.path,
      '--name',
      'all',
      '--type',
      'lb',
      '--cpu',
      'cpu5g-4',
      '--min',
      '0',
      '--max',
      '0',
      '--port',
      '8080',
      '--data-center',
      'LOCAL-1',
    );
    assert.equal(json.type, 'LOAD_BALANCER');
    assert.ok(json.requestUrls['base']?.endsWith(json.id));
    const { cpu, ports, dataCenterIds, workers, scaling } = await endpoint(json.id);
    assert.deepEqual(
      [cpu?.[0]?.id, cpu?.[0]?.vcpuCount, ports, dataCenterIds, workers.max, scaling.type],
      ['cpu5g', 4, ['8080/http'], ['LOCAL-1'], 0, 'REQUEST_COUNT'],
    );
    const wrong = await berth('deploy', folder.path, '--name', 'all', '--type', 'queue');
    assert.equal(wrong.code, 2);
    assert.match(wrong.stderr, /"all" is of type lb, and that is fixed; choose another --name/);
  });

  test('GPUs are named by type, by what people call them, or by pool', async () => {
    const { body } = await ann.call<{ gpus: { id: string; name: string; pool: string | null }[] }>(
      'GET',
      '/v2/catalog/gpus',
    );
    const type = body.gpus.find(
      ({ pool }) => pool !== null && body.gpus.filter((other) => other.pool === pool).length > 1,
    );
    assert.ok(type?.pool);
    for (const word of [type.id, type.name.toLowerCase()]) {
      const { json, code, stderr } = await berth(
        'deploy',
        folder.path,
        '--name',
        `gpu ${word}`,
        '--gpu',
        word,
        '--gpu-count',
        '2',
        '--max',
        '0',
      );
      assert.equal(code, 0, stderr);
      const { gpu } = await endpoint(json.id);
      assert.deepEqual([gpu?.pools, gpu?.count], [[type.pool], 2]);
      assert.deepEqual(
        gpu?.excludedTypes,
        body.gpus.filter(({ pool, id }) => pool === type.pool && id !== type.id).map(({ id }) => id),
      );
    }
    const { json } = await berth('deploy', folder.path, '--name', 'pool', '--gpu', type.pool, '--max', '0');
    assert.deepEqual((await endpoint(json.id)).gpu?.excludedTypes, []);
    const unknown = await berth('deploy', folder.path, '--name', 'none', '--gpu', 'NVIDIA Nonsense 9000');
    assert.equal(unknown.code, 1);
    assert.match(unknown.stderr, /there is no GPU type or pool "NVIDIA Nonsense 9000"/);
    const absent = await berth('deploy', folder.path, '--name', 'absent', '--gpu', 'NVIDIA B200');
    assert.match(
      absent.stderr,
      /created\nberth: no worker can start now: none of the GPUs asked for is free here; free: .*NVIDIA GeForce RTX 4090 \(virtual\)/,
    );
  });

  test('an image is taken by its name', async () => {
    const { json } = await berth('deploy', 'ghcr.io/somebody/upper:1.2', '--max', '0');
    assert.deepEqual([json.name, json.image], ['upper', 'ghcr.io/somebody/upper:1.2']);
  });

  test('a handler that imports a package that nothing lists is said', async (t) => {
    const python = createTemporaryFolder('python', { 'handler.py': 'import runpod\n' });
    t.after(() => python.remove());
    const { code, stderr } = await berth('deploy', python.path, '--max', '0');
    assert.equal(code, 0, stderr);
    assert.match(stderr, /^berth: handler\.py imports runpod, and neither requirements\.txt nor/);
  });

  test('what is neither a folder nor clearly an image is refused, and secrets that do not exist', async () => {
    const refused = await berth('deploy', 'somebody/lower');
    assert.equal(refused.code, 1);
    assert.match(
      refused.stderr,
      /there is no folder somebody\/lower.* write somebody\/lower:latest, or --force/,
    );
    const secret = await berth('deploy', 'local/shell', '--env', 'A={{ RUNPOD_SECRET_none }}');
    assert.match(secret.stderr, /^berth: secrets that do not exist: none; create them with/);
    const { code, json, stderr } = await berth('deploy', 'somebody/lower', '--force');
    assert.deepEqual([code, json.image], [0, 'somebody/lower']);
    assert.match(
      stderr,
      /created\nberth: no worker can be placed: the image "somebody\/lower" needs a container engine, and none is connected here; .*\n$/,
    );
    assert.equal((await berth('deploy', 'local/shell', '--name', 'bare', '-q')).stderr, '');
    assert.doesNotMatch((await berth('deploy', 'ghcr.io/somebody/other')).stderr, /folder ghcr/);
  });

  test('a terminal shows how much of a large folder has been sent', async () => {
    const large = createTemporaryFolder('large', { 'handler.js': HANDLER, weights: 'w'.repeat(2_000_000) });
    const env = { BERTH_URL: fixture.server.url, BERTH_API_KEY: ann.key };
    const argv = ['deploy', large.path, '--name', 'large'];
    const { code, err } = await runInProcess(argv, { env, terminal: true });
    assert.equal(code, 0, err);
    assert.match(
      err,
      /^uploading 2 files, 2.0 MB\n\r0%, [^\n]*\r100%, 2.7 MB of 2.7 MB, .*\nendpoint large /,
    );
    large.remove();
  });

  test('a terminal is told that packages are installed first', async () => {
    const packages = createTemporaryFolder('Packages', { 'handler.py': '', 'requirements.txt': '# none\n' });
    const { out } = await runInProcess(['deploy', packages.path, '--name', 'packages'], {
      env: { BERTH_URL: fixture.server.url, BERTH_API_KEY: ann.key, npm_command: 'exec' },
      terminal: true,
    });
    packages.remove();
    assert.match(out, /The packages in requirements\.txt are installed once/);
    assert.match(out, /Try it: npx berth run packages /);
  });

  test('where no worker runs, the job that waits says why, and so do the logs', async () => {
    const why = /the maximum of this endpoint is 0/;
    await berth('deploy', folder.path, '--name', 'never', '--max', '0');
    const waits = await berth<{ status: string; reason: string }>(
      'run',
      'never',
      '1',
      '--sync',
      '--wait',
      '1000',
    );
    assert.equal(waits.json.status, 'IN_QUEUE');
    assert.match(waits.json.reason, why);
    assert.match((await berth('logs', 'never')).stderr, why);
    // What follows the id of a load balancing endpoint is for its workers.
    await berth('deploy', folder.path, '--name', 'balanced', '--type', 'lb', '--max', '0');
    assert.match((await berth('logs', 'balanced')).stderr, /no worker of balanced is running/);
  });

  test('invalid arguments are refused before anything happens', async () => {
    const empty = createTemporaryFolder('empty', { 'index.ts': '' });
    const said: [string[], number, RegExp][] = [
      [['deploy', empty.path], 1, /has nothing to run: it needs a handler\.ts/],
      [['deploy', './no-such-folder'], 1, /there is no folder \.\/no-such-folder\n/],
      [['deploy', `${empty.path}/no-such-folder`], 1, /there is no folder \S+\n/],
      [
        ['deploy', 'tests/no-such-folder'],
        1,
        /there is no folder tests\/no-such-folder; an image of that name is tests\/no-such-folder:latest/,
      ],
      [['deploy', 'examples/ehco'], 1, /there is no folder examples\/ehco; did you mean examples\/echo\?\n/],
      [['deploy', folder.path, '--gpu', 'A40', '--cpu', 'cpu3c'], 2, /--gpu and --cpu exclude each other/],
      [['deploy', folder.path, '--gpu-count', '2'], 2, /--gpu-count goes with --gpu/],
      [['deploy', folder.path, '--min', '-1'], 2, /--min/],
      [['deploy', folder.path, '--min', '3', '--max', '2'], 2, /--min is 3, which is more than --max, 2/],
      [['deploy', folder.path, '--env', 'novalue'], 2, /--env is "novalue"; allowed: NAME=VALUE/],
      [['deploy', folder.path, '--cpu', 'a-b-c'], 2, /--cpu is "a-b-c"/],
      [['deploy', folder.path, '--cpu', 'cpu9z'], 1, /cpu9z/],
      [['deploy', folder.path, '--type', 'other'], 2, /--type is "other"; allowed: queue, lb/],
      [['deploy', folder.path, '--name', 'shell'], 1, /bare machine/],
      [['deploy'], 2, /is missing/],
      [['run', 'nobody', '{}'], 1, /there is no endpoint "nobody"/],
      [['run', 'My Ap', '{}'], 1, /did you mean "My App"/],
      [['run', 'My App', '{"input"'], 2, /the job is not JSON/],
      [['run', 'My App', '@no-such-file'], 1, /there is no file no-such-file/],
      [['run', 'My App', '{}', '--sync', '--stream'], 2, /exclude each other/],
      [['run', 'My App', '{}', '--wait', '5'], 2, /--wait goes with --sync/],
      [['logs', 'My App', '--worker', 'a', '--job', 'b'], 2, /exclude each other/],
      [['logs', 'My App', '--tail', '5001'], 2, /at most 5000/],
      [['logs', 'My App'], 1, /no worker of My App is running/],
      [['rm', 'My App'], 2, /--yes is needed/],
    ];
    for (const [args, code, words] of said) {
      const ran = await berth(...args);
      assert.deepEqual([ran.code, ran.stdout], [code, ''], `${args.join(' ')}: ${ran.stderr}`);
      assert.match(ran.stderr, words, args.join(' '));
      assert.doesNotMatch(ran.stderr, /\n {4}at /);
    }
    empty.remove();
  });

  test('a name that two endpoints have is not guessed; an id always does', async () => {
    const order = {
      name: 'twice',
      type: 'QUEUE',
      image: 'local/shell',
      cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
      scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
      workers: { min: 0, max: 0 },
    };
    const ids = await Promise.all(
      [1, 2].map(async () => (await ann.call<{ id: string }>('POST', '/v2/serverless', order)).body.id),
    );
    const unclear = await berth('run', 'twice', '{}');
    assert.equal(unclear.code, 1);
    assert.match(unclear.stderr, /2 endpoints are called "twice"; name one by its id/);
    const deployed = await berth('deploy', folder.path, '--name', String(ids[0]));
    assert.deepEqual([deployed.json.id, deployed.json.name, deployed.json.created], [ids[0], 'twice', false]);
    for (const id of ids)
      assert.deepEqual((await berth<unknown>('rm', String(id), '-y')).json, {
        id,
        name: 'twice',
        removed: true,
      });
  });

  test('a job waits in the queue of an endpoint without workers; --wait is how long one looks at it', async () => {
    const { json } = await berth('deploy', folder.path, '--name', 'waiting', '--max', '0');
    const queued = await berth<{ id: string; status: string }>('run', 'waiting', '{"input": {"n": 1}}');
    assert.equal(queued.json.status, 'IN_QUEUE');
    const looked = await berth<{ status: string }>('run', json.id, '{"n": 2}', '--sync', '--wait', '1');
    assert.deepEqual([looked.code, looked.json.status], [0, 'IN_QUEUE']);
    const { body } = await fixture.server
      .client(ann.key)
      .call<{ requests: { input: unknown }[] }>('GET', `/v2/${json.id}/requests`);
    assert.deepEqual(
      body.requests.map(({ input }) => input),
      [{ n: 2 }, { n: 1 }],
    );
    const listed = await berth<{
      endpoints: { name: string; jobs: { inQueue: number }; workers: { total: number; max: number } }[];
    }>('ps');
    assert.deepEqual(
      listed.json.endpoints
        .filter(({ name }) => name === 'waiting')
        .map(({ jobs, workers }) => [jobs.inQueue, workers.total, workers.max]),
      [[2, 0, 0]],
    );
  });

  test('a key that opens one endpoint alone runs jobs on it by its id', async () => {
    const { id } = (await berth('deploy', folder.path, '--name', 'waiting')).json;
    const { key } = (
      await berth<{ key: string }>(
        'key',
        'create',
        '--name',
        'caller',
        '--access',
        'restricted',
        '--endpoint',
        id,
      )
    ).json;
    const ran = await runBerth<{ status: string }>(['run', id, '{}'], {
      BERTH_URL: fixture.server.url,
      BERTH_API_KEY: key,
    });
    assert.deepEqual([ran.code, ran.json?.status], [0, 'IN_QUEUE'], ran.stderr);
  });

  test('nothing of an endpoint is left after rm', async () => {
    assert.equal((await berth('rm', 'waiting', '--yes')).code, 0);
    assert.equal((await berth('run', 'waiting', '{}')).code, 1);
  });
});
