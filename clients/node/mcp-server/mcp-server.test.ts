import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { mcpEnvironment, startMcpServer } from '../../support/mcp-client.ts';
import type { McpServerProcess } from '../../support/mcp-client.ts';
import { clientFixture } from '../../../packages/testing/src/client-fixture.ts';
import { waitFor } from '../../../packages/testing/src/wait-for.ts';

interface Thing extends Record<string, unknown> {
  id: string;
  name: string;
  status: string;
}

const GPU = 'NVIDIA GeForce RTX 4090';
/** Of these there are two, and nobody else takes one. */
const CLUSTER_GPU = 'NVIDIA A100 80GB PCIe';
const STAYS = ['sh', '-c', 'echo up; exec sleep 1000'];

describe('@runpod/mcp-server', () => {
  const fixture = clientFixture();
  let mcp: McpServerProcess;
  before(async () => {
    mcp = await startMcpServer('mcp-server', mcpEnvironment(fixture.server));
  });
  after(() => mcp.stop());

  test('tells its tools', () => {
    assert.match(mcp.version, /^4\.0\.0/);
    assert.ok(mcp.tools.length > 60, mcp.tools.join());
  });

  test('reads the catalog', async () => {
    const { gpus } = await mcp.ask<{ gpus: Thing[] }>('list-gpu-types', {
      include: ['AVAILABILITY'],
      product: ['POD'],
      count: 1,
    });
    assert.equal(gpus.find(({ id }) => id === GPU)?.['availability'], 'MEDIUM');
    assert.equal(
      (
        await mcp.ask('get-gpu-type', {
          id: GPU,
          include: ['AVAILABILITY'],
          product: ['SERVERLESS'],
          minCudaVersion: '12.0',
        })
      )['pool'],
      'ADA_24',
    );
    assert.ok((await mcp.ask<{ cpus: Thing[] }>('list-cpu-types')).cpus.some(({ id }) => id === 'cpu3c'));
    assert.equal(
      (
        await mcp.ask('get-cpu-type', {
          id: 'cpu3c',
          include: ['AVAILABILITY'],
          product: ['POD'],
          vcpuCount: 2,
        })
      )['id'],
      'cpu3c',
    );
    assert.deepEqual(
      (
        await mcp.ask<{ dataCenters: Thing[] }>('list-data-centers', {
          include: ['GPU_AVAILABILITY', 'CPU_AVAILABILITY'],
        })
      ).dataCenters.map(({ id }) => id),
      ['LOCAL-1'],
    );
    assert.ok(
      Array.isArray(
        (await mcp.ask('get-data-center', { id: 'LOCAL-1', include: ['GPU_AVAILABILITY'] }))[
          'gpuAvailability'
        ],
      ),
    );
    assert.ok(
      (await mcp.ask<{ templates: Thing[] }>('list-public-templates', { source: 'official' })).templates.some(
        ({ id }) => id === 'runpod-ubuntu',
      ),
    );
  });

  test('asks for capacity without a key, over GraphQL', async () => {
    const { items } = await mcp.ask<{ items: Thing[] }>('get-capacity', {
      gpuTypeIds: ['4090'],
      secureCloudOnly: true,
    });
    assert.deepEqual(
      items.map(({ id, stockStatus }) => [id, stockStatus]),
      [[GPU, 'Medium']],
    );
    const probed = await mcp.ask<{
      items: { cudaVersions: Record<string, { stock: string }> }[];
      probeErrors?: unknown;
    }>('get-capacity', { gpuTypeIds: ['4090'], cudaVersions: ['12.8', '99.0'] });
    assert.deepEqual(
      [
        probed.probeErrors,
        probed.items[0]?.cudaVersions['12.8']?.stock,
        probed.items[0]?.cudaVersions['99.0']?.stock,
      ],
      [undefined, 'Medium', 'Out'],
    );
  });

  test('rents a pod, follows its log, stops it and gives it back', async () => {
    const pod = await mcp.ask<Thing>('create-pod', {
      body: {
        name: 'mcp',
        image: 'local/shell',
        gpu: { id: GPU, count: 1 },
        cmd: STAYS,
        ports: ['8888/http'],
        env: { A: 'b' },
      },
    });
    await waitFor(
      'the pod runs',
      async () => (await mcp.ask<Thing>('get-pod', { id: pod.id })).status === 'RUNNING',
    );
    assert.deepEqual(
      (await mcp.ask<{ pods: Thing[] }>('list-pods', { includeClusterPods: true })).pods.map(({ id }) => id),
      [pod.id],
    );
    const { items } = await mcp.ask<{ items: { source: string; line: string }[] }>('stream-pod-logs', {
      podId: pod.id,
      source: 'container',
      tail: 10,
      maxWaitMs: 1000,
    });
    assert.deepEqual(
      items.map(({ line }) => line),
      ['up'],
    );
    assert.equal(
      (await mcp.ask<Thing>('update-pod', { id: pod.id, body: { name: 'renamed' } })).name,
      'renamed',
    );
    assert.equal(
      (await mcp.ask<Thing>('pod-action', { id: pod.id, body: { action: 'stop' } })).status,
      'EXITED',
    );
    const refused = await mcp.call<{ status: number; detail: string }>('pod-action', {
      id: pod.id,
      body: { action: 'stop' },
    });
    assert.deepEqual([refused.failed, refused.body.status], [true, 409]);
    await mcp.ask('delete-pod', { id: pod.id });
    assert.equal((await mcp.call<{ status: number }>('get-pod', { id: pod.id })).body.status, 404);
  });

  test('makes, changes and removes an endpoint', async () => {
    const made = await mcp.ask<Thing>('create-endpoint', {
      body: {
        name: 'mcp',
        image: 'local/echo',
        type: 'QUEUE',
        gpu: { pools: ['ADA_24'], count: 1 },
        workers: { min: 1, max: 1 },
        scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
      },
    });
    assert.ok(
      (await mcp.ask<{ items: Thing[] }>('list-endpoints', { limit: 10 })).items.some(
        ({ id }) => id === made.id,
      ),
    );
    const worker = await waitFor('a worker is idle', async () =>
      (await mcp.ask<{ workers: Thing[] }>('list-endpoint-workers', { id: made.id })).workers.find(
        ({ status }) => status === 'IDLE',
      ),
    );
    assert.ok(
      (
        await mcp.ask<{ count: number }>('stream-worker-logs', {
          endpointId: made.id,
          workerId: worker.id,
          maxWaitMs: 1000,
        })
      ).count > 0,
    );
    assert.equal(
      (await mcp.ask<Thing>('update-endpoint', { id: made.id, body: { name: 'changed', env: { NEW: '1' } } }))
        .name,
      'changed',
    );
    assert.equal(
      (await mcp.ask<{ endpointVersion: number }>('list-endpoint-releases', { id: made.id })).endpointVersion,
      1,
    );
    const { previousGpuIds } = await mcp.ask<{ previousGpuIds: string }>('set-endpoint-gpus', {
      endpointId: made.id,
      gpuIds: 'AMPERE_80,ADA_80_PRO,-NVIDIA H100 PCIe',
    });
    assert.equal(previousGpuIds, 'ADA_24');
    assert.equal((await mcp.ask<Thing>('get-endpoint', { id: made.id })).name, 'changed');
    assert.deepEqual(
      (await mcp.ask<{ builds: unknown[] }>('list-endpoint-builds', { id: made.id })).builds,
      [],
    );
    assert.equal(
      (await mcp.call<{ status: number }>('get-endpoint-build', { id: made.id, buildId: 'none' })).body
        .status,
      404,
    );
    await mcp.ask('delete-endpoint', { id: made.id });
  });

  test('sends jobs, waits for them and reads what they stream', async () => {
    const echo = await fixture.deployExample('echo');
    const ran = await mcp.ask<Thing>('runsync-endpoint', {
      endpointId: echo,
      input: { say: 'hello' },
      wait: 30_000,
    });
    assert.deepEqual([ran.status, ran['output']], ['COMPLETED', { say: 'hello' }]);
    const sent = await mcp.ask<Thing>('run-endpoint', {
      endpointId: echo,
      input: { n: 1 },
      policy: { executionTimeout: 60_000 },
    });
    const ended = await mcp.ask<Thing>('get-job-status', { endpointId: echo, jobId: sent.id, wait: 20_000 });
    assert.deepEqual([ended.status, ended['output']], ['COMPLETED', { n: 1 }]);

    const streaming = await fixture.deployExample('streaming');
    const { id } = await mcp.ask<Thing>('run-endpoint', {
      endpointId: streaming,
      input: { text: 'one two', pauseMs: 20 },
    });
    const { status, stream } = await mcp.ask<{ status: string; stream: { output: unknown }[] }>(
      'stream-job',
      { endpointId: streaming, jobId: id },
    );
    assert.deepEqual(
      [status, stream.map(({ output }) => output)],
      [
        'COMPLETED',
        [
          { index: 0, word: 'one' },
          { index: 1, word: 'two' },
        ],
      ],
    );

    const { workers } = await mcp.ask<{ workers: Record<string, number> }>('endpoint-health', {
      endpointId: echo,
    });
    assert.deepEqual(Object.keys(workers).sort(), [
      'idle',
      'initializing',
      'ready',
      'running',
      'throttled',
      'unhealthy',
    ]);
  });

  test('cancels, retries and purges jobs', async () => {
    const failing = await fixture.deployExample('failing');
    const { id } = await mcp.ask<Thing>('runsync-endpoint', { endpointId: failing, input: { how: 'error' } });
    assert.equal((await mcp.ask<Thing>('retry-job', { endpointId: failing, jobId: id })).status, 'IN_QUEUE');

    const idle = await fixture.deployExample('echo', { min: 0, max: 0 });
    const [first] = [
      await mcp.ask<Thing>('run-endpoint', { endpointId: idle, input: {} }),
      await mcp.ask<Thing>('run-endpoint', { endpointId: idle, input: {} }),
    ];
    const waiting = await mcp.ask<Thing>('get-job-status', { endpointId: idle, jobId: first.id });
    assert.deepEqual([waiting.status, typeof waiting['workerHealth']], ['IN_QUEUE', 'object']);
    assert.equal(
      (await mcp.ask<Thing>('cancel-job', { endpointId: idle, jobId: first.id })).status,
      'CANCELLED',
    );
    assert.deepEqual(await mcp.ask('purge-endpoint-queue', { endpointId: idle }), {
      removed: 1,
      status: 'completed',
    });
  });

  test('keeps templates, volumes, registries, delegations and SSH keys', async () => {
    const template = await mcp.ask<Thing>('create-template', {
      body: { name: 'mcp', image: 'local/echo', serverless: true, env: { A: 'b' } },
    });
    assert.equal(
      (
        await mcp.ask<Thing>('update-template', {
          id: template.id,
          body: { name: 'renamed', cmd: ['a', 'b c'] },
        })
      )['args'],
      "a 'b c'",
    );
    assert.equal((await mcp.ask<Thing>('get-template', { id: template.id })).name, 'renamed');
    assert.deepEqual(
      (await mcp.ask<{ templates: Thing[] }>('list-templates')).templates.map(({ id }) => id),
      [template.id],
    );
    await mcp.ask('delete-template', { id: template.id });

    const volume = await mcp.ask<Thing>('create-network-volume', {
      body: { name: 'mcp', size: 10, dataCenter: 'LOCAL-1' },
    });
    assert.equal(
      (await mcp.ask<Thing>('update-network-volume', { id: volume.id, body: { size: 20 } }))['size'],
      20,
    );
    assert.equal((await mcp.ask<Thing>('get-network-volume', { id: volume.id }))['dataCenter'], 'LOCAL-1');
    assert.equal(
      (await mcp.ask<{ networkVolumes: Thing[] }>('list-network-volumes')).networkVolumes.length,
      1,
    );
    await mcp.ask('delete-network-volume', { id: volume.id });

    const registry = await mcp.ask<Thing>('create-registry', {
      body: { name: 'mcp', username: 'u', password: 'p' },
    });
    assert.deepEqual(await mcp.ask('get-registry', { id: registry.id }), { id: registry.id, name: 'mcp' });
    assert.equal((await mcp.ask<{ registries: Thing[] }>('list-registries')).registries.length, 1);
    await mcp.ask('delete-registry', { id: registry.id });

    const delegation = await mcp.ask<Thing>('create-delegation', {
      body: { resource: 'arn:aws:ecr:us-east-1:123456789012:repository/app' },
    });
    assert.equal((await mcp.ask<{ delegations: Thing[] }>('list-delegations')).delegations.length, 1);
    await mcp.ask('revoke-delegation', { id: delegation.id });

    const keys = ['ssh-ed25519 AAAA me'];
    assert.deepEqual(await mcp.ask('update-ssh-keys', { body: { keys } }), { keys });
    assert.deepEqual(await mcp.ask('get-ssh-keys'), { keys });
  });

  test('deploys what the hub lists, and knows of no public endpoints', async () => {
    const { items } = await mcp.ask<{
      items: { repo: string; type: string; listedRelease: { imageName: string; config: unknown } }[];
    }>('list-hub-repos', { searchTerm: 'echo', type: 'SERVERLESS', includeConfig: true });
    const echo = items.find(({ repo }) => repo === 'berth/echo');
    assert.deepEqual([echo?.type, echo?.listedRelease.imageName], ['SERVERLESS', 'local/echo']);
    const { endpoint } = await mcp.ask<{ endpoint: Thing }>('deploy-hub-repo', {
      repo: 'berth/echo',
      name: 'from the hub',
      workersMax: 1,
    });
    const ran = await mcp.ask<Thing>('runsync-endpoint', { endpointId: endpoint.id, input: { from: 'hub' } });
    assert.deepEqual([ran.status, ran['output']], ['COMPLETED', { from: 'hub' }]);
    assert.deepEqual((await mcp.ask<{ items: unknown[] }>('list-public-endpoints')).items, []);
  });

  test('makes, renames and removes a cluster', async () => {
    const made = await mcp.ask<Thing>('create-cluster', {
      body: {
        name: 'mcp',
        type: 'APPLICATION',
        compute: { gpuTypeId: CLUSTER_GPU, gpuCountPerPod: 1, podCount: 2 },
        image: 'local/shell',
        cmd: STAYS,
      },
    });
    assert.equal((await mcp.ask<{ pods: Thing[] }>('list-cluster-pods', { id: made.id })).pods.length, 2);
    assert.equal(
      (await mcp.ask<Thing>('update-cluster', { id: made.id, body: { name: 'renamed' } })).name,
      'renamed',
    );
    assert.equal((await mcp.ask<Thing>('get-cluster', { id: made.id })).name, 'renamed');
    assert.deepEqual(
      (await mcp.ask<{ clusters: Thing[] }>('list-clusters')).clusters.map(({ id }) => id),
      [made.id],
    );
    await mcp.ask('delete-cluster', { id: made.id });
  });

  for (const scope of [
    'list-billing',
    'list-pod-billing',
    'list-serverless-billing',
    'list-endpoint-billing',
    'list-network-volume-billing',
    'list-cluster-billing',
  ]) {
    test(`${scope} tells what was used`, async () => {
      const { records, metadata } = await mcp.ask<{
        records: unknown[];
        metadata: { query: { bucketSize: string } };
      }>(scope, { lastN: 2, bucketSize: 'day' });
      assert.ok(Array.isArray(records));
      assert.equal(metadata.query.bucketSize, 'day');
    });
  }

  test('a key that opens nothing is told apart from a thing that is not there', async () => {
    const stranger = await startMcpServer('mcp-server', {
      ...mcpEnvironment(fixture.server),
      RUNPOD_API_KEY: 'rpa_WRONG',
    });
    try {
      assert.equal((await stranger.call<{ status: number }>('list-pods')).body.status, 401);
    } finally {
      stranger.stop();
    }
  });

  test('every tool was used', () => {
    assert.deepEqual(
      mcp.tools.filter((tool) => !mcp.usedTools.has(tool)),
      [],
    );
  });
});
