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

interface Listed {
  items: Thing[];
}

const GPU = 'NVIDIA GeForce RTX 4090';
/** It gives pods no command, so their image has to be one that stays: here a template says so. */
const STAYS = {
  name: 'stays',
  image: 'local/shell',
  cmd: ['sleep', '1000'],
  mounts: { persistent: { size: 10, path: '/workspace' } },
};

/** Version 3 speaks REST v2 unless it is told otherwise, and can be told to speak v1. */
for (const version of ['v2', 'v1'] as const) {
  describe(`@runpod/mcp-server 3 over REST ${version}`, () => {
    const fixture = clientFixture();
    let mcp: McpServerProcess;
    before(async () => {
      mcp = await startMcpServer('mcp-server-earlier', {
        ...mcpEnvironment(fixture.server),
        RUNPOD_REST_VERSION: version,
      });
    });
    after(() => mcp.stop());

    test('reads the catalog', async () => {
      assert.ok(
        (
          await mcp.ask<Listed>('list-gpu-types', { searchTerm: '4090', includeAvailability: true })
        ).items.some(({ id }) => id === GPU),
      );
      assert.ok((await mcp.ask<Listed>('list-data-centers')).items.some(({ id }) => id === 'LOCAL-1'));
      assert.equal(
        (await mcp.ask<Listed>('get-capacity', { gpuTypeIds: ['4090'] })).items[0]?.['stockStatus'],
        'Medium',
      );
      if (version === 'v1') return;
      assert.equal(
        (
          await mcp.ask<Thing>('get-gpu-type', {
            gpuTypeId: GPU,
            includeAvailability: true,
            product: 'SERVERLESS',
          })
        )['availability'],
        'MEDIUM',
      );
      assert.ok((await mcp.ask<Listed>('list-cpu-types')).items.length > 0);
      assert.equal((await mcp.ask<Thing>('get-cpu-type', { cpuTypeId: 'cpu3c' })).id, 'cpu3c');
      assert.equal((await mcp.ask<Thing>('get-data-center', { dataCenterId: 'LOCAL-1' })).id, 'LOCAL-1');
    });

    test('rents a pod, stops it and gives it back', async () => {
      const template = await fixture.client.call<Thing>('POST', '/v2/templates', STAYS);
      const order = version === 'v2' ? { templateId: template.body.id } : { imageName: 'local/shell' };
      const pod = await mcp.ask<Thing>('create-pod', {
        name: 'mcp',
        gpuTypeIds: [GPU],
        gpuCount: 1,
        env: { A: 'b' },
        ports: ['8888/http', '22/tcp'],
        ...order,
      });
      if (version === 'v2') {
        await waitFor(
          'the pod runs',
          async () => (await mcp.ask<Thing>('get-pod', { podId: pod.id })).status === 'RUNNING',
        );
        assert.ok(
          (
            await mcp.ask<{ count: number }>('stream-pod-logs', {
              podId: pod.id,
              source: 'system',
              maxWaitMs: 1000,
            })
          ).count > 0,
        );
        assert.equal((await mcp.ask<Thing>('restart-pod', { podId: pod.id })).id, pod.id);
        await mcp.ask('stop-pod', { podId: pod.id });
        await mcp.ask('start-pod', { podId: pod.id });
      } else {
        const shown = await mcp.ask<Thing>('get-pod', {
          podId: pod.id,
          includeMachine: true,
          includeNetworkVolume: true,
        });
        assert.deepEqual(
          [shown['imageName'], (shown['machine'] as Thing)['gpuTypeId']],
          ['local/shell', GPU],
        );
      }
      assert.equal((await mcp.ask<Thing>('update-pod', { podId: pod.id, name: 'renamed' })).name, 'renamed');
      assert.ok(
        (await mcp.ask<Listed>('list-pods', { name: 'renamed' })).items.some(({ id }) => id === pod.id),
      );
      await mcp.ask('delete-pod', { podId: pod.id });
    });

    test('sends pods without a GPU to REST v1', async () => {
      const pod = await mcp.ask<Thing>('create-pod', {
        name: 'cpu',
        computeType: 'CPU',
        imageName: 'local/shell',
      });
      assert.equal(pod['desiredStatus'], 'RUNNING');
      await mcp.ask('delete-pod', { podId: pod.id });
    });

    test('makes, changes and removes an endpoint', async () => {
      const template = await mcp.ask<Thing>('create-template', {
        name: 'for the endpoint',
        imageName: 'local/echo',
        isServerless: true,
      });
      const order =
        version === 'v2'
          ? { imageName: 'local/echo', gpuPoolIds: ['ADA_24'] }
          : { templateId: template.id, gpuTypeIds: [GPU], computeType: 'GPU' };
      const made = await mcp.ask<Thing>('create-endpoint', {
        name: 'mcp',
        workersMin: 0,
        workersMax: 1,
        scalerType: 'QUEUE_DELAY',
        scalerValue: 4,
        ...order,
      });
      assert.ok(
        (await mcp.ask<Listed>('list-endpoints', { includeTemplate: true, includeWorkers: true })).items.some(
          ({ id }) => id === made.id,
        ),
      );
      await mcp.ask('update-endpoint', {
        endpointId: made.id,
        name: 'changed',
        scalerValue: 5,
        workersMax: 2,
      });
      assert.equal(
        (await mcp.ask<Thing>('get-endpoint', { endpointId: made.id, includeTemplate: true })).name,
        'changed',
      );
      const { endpoint } = await mcp.ask<{ endpoint: Thing }>('set-endpoint-gpus', {
        endpointId: made.id,
        pools: ['AMPERE_80'],
        excludeGpuTypeIds: ['NVIDIA A100-SXM4-80GB'],
      });
      assert.equal(endpoint['gpuIds'], 'AMPERE_80,-NVIDIA A100-SXM4-80GB');
      if (version === 'v2') {
        assert.ok(
          Array.isArray((await mcp.ask<Listed>('list-endpoint-workers', { endpointId: made.id })).items),
        );
        assert.ok(
          (await mcp.ask<Listed>('list-endpoint-releases', { endpointId: made.id })).items.length > 0,
        );
      }
      await mcp.ask('delete-endpoint', { endpointId: made.id });
    });

    test('sends jobs and reads what they stream', async () => {
      const streaming = await fixture.deployExample('streaming');
      assert.equal(
        (
          await mcp.ask<Thing>('runsync-endpoint', {
            endpointId: streaming,
            input: { text: 'one', pauseMs: 1 },
          })
        ).status,
        'COMPLETED',
      );
      const { id } = await mcp.ask<Thing>('run-endpoint', {
        endpointId: streaming,
        input: { text: 'one two', pauseMs: 20 },
      });
      const { stream } = await mcp.ask<{ stream: { output: { word: string } }[] }>('stream-job', {
        endpointId: streaming,
        jobId: id,
      });
      assert.deepEqual(
        stream.map(({ output }) => output.word),
        ['one', 'two'],
      );
      assert.equal(
        (await mcp.ask<Thing>('get-job-status', { endpointId: streaming, jobId: id })).status,
        'COMPLETED',
      );
      assert.ok(
        (await mcp.ask<{ jobs: Record<string, number> }>('endpoint-health', { endpointId: streaming })).jobs[
          'completed'
        ],
      );
    });

    test('cancels, retries and purges jobs', async () => {
      const failing = await fixture.deployExample('failing');
      const failed = await mcp.ask<Thing>('runsync-endpoint', {
        endpointId: failing,
        input: { how: 'error' },
      });
      assert.equal(
        (await mcp.ask<Thing>('retry-job', { endpointId: failing, jobId: failed.id })).status,
        'IN_QUEUE',
      );
      const idle = await fixture.deployExample('echo', { min: 0, max: 0 });
      const { id } = await mcp.ask<Thing>('run-endpoint', { endpointId: idle, input: {} });
      assert.equal((await mcp.ask<Thing>('cancel-job', { endpointId: idle, jobId: id })).status, 'CANCELLED');
      assert.equal(
        (await mcp.ask<{ removed: number }>('purge-endpoint-queue', { endpointId: idle })).removed,
        0,
      );
    });

    test('keeps templates, volumes, registries and delegations', async () => {
      const template = await mcp.ask<Thing>('create-template', {
        name: 'mcp',
        imageName: 'a:1',
        dockerStartCmd: ['run', 'it'],
        containerDiskInGb: 5,
        env: { A: 'b' },
        ports: ['80/http'],
      });
      await mcp.ask('update-template', {
        templateId: template.id,
        name: 'renamed',
        dockerStartCmd: ['stop'],
      });
      assert.equal((await mcp.ask<Thing>('get-template', { templateId: template.id })).name, 'renamed');
      assert.ok(
        (await mcp.ask<Listed>('list-templates', { includeEndpointBoundTemplates: true })).items.some(
          ({ id }) => id === template.id,
        ),
      );
      await mcp.ask('delete-template', { templateId: template.id });

      const volume = await mcp.ask<Thing>('create-network-volume', {
        name: 'mcp',
        size: 10,
        dataCenterId: 'LOCAL-1',
      });
      assert.equal(
        (await mcp.ask<Thing>('update-network-volume', { networkVolumeId: volume.id, size: 20 }))['size'],
        20,
      );
      assert.equal((await mcp.ask<Thing>('get-network-volume', { networkVolumeId: volume.id })).name, 'mcp');
      assert.equal((await mcp.ask<Listed>('list-network-volumes')).items.length, 1);
      await mcp.ask('delete-network-volume', { networkVolumeId: volume.id });

      const registry = await mcp.ask<Thing>('create-container-registry-auth', {
        name: 'mcp',
        username: 'u',
        password: 'p',
      });
      assert.equal(
        (await mcp.ask<Thing>('get-container-registry-auth', { containerRegistryAuthId: registry.id })).name,
        'mcp',
      );
      assert.equal((await mcp.ask<Listed>('list-container-registry-auths')).items.length, 1);
      await mcp.ask('delete-container-registry-auth', { containerRegistryAuthId: registry.id });
      if (version === 'v1') return;
      const delegation = await mcp.ask<Thing>('create-registry-delegation', {
        resource: 'arn:aws:ecr:us-east-1:123456789012:repository/app',
        name: 'mcp',
      });
      assert.equal((await mcp.ask<Listed>('list-registry-delegations')).items.length, 1);
      await mcp.ask('delete-registry-delegation', { delegationId: delegation.id });
    });

    test('deploys what the hub lists', async () => {
      assert.ok(
        (await mcp.ask<{ items: { repo: string }[] }>('list-hub-repos')).items.some(
          ({ repo }) => repo === 'berth/echo',
        ),
      );
      const { endpoint } = await mcp.ask<{ endpoint: Thing }>('deploy-hub-repo', {
        repo: 'berth/echo',
        gpuIds: 'ADA_24',
      });
      assert.equal(endpoint['gpuIds'], 'ADA_24');
      assert.deepEqual((await mcp.ask<Listed>('list-public-endpoints')).items, []);
    });

    // Its version 1 has no tool for it.
    if (version !== 'v1')
      for (const scope of ['all', 'pods', 'serverless', 'endpoints', 'networkvolumes', 'clusters'])
        test(`get-billing tells what ${scope} used`, async () =>
          assert.ok(Array.isArray((await mcp.ask<Listed>('get-billing', { scope, lastN: 2 })).items)));
  });
}
