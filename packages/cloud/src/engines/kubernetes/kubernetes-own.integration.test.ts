import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { Readable } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import { fileArchive } from '../../../../testing/src/docker-test-image.mjs';
import { KUBERNETES_TEST_IMAGE } from '../../../../testing/src/kubernetes/kubernetes-cluster.ts';
import { waitFor } from '../../../../testing/src/wait-for.ts';
import { withKubernetes } from '../../../../testing/src/kubernetes/with-kubernetes.ts';
import type { InstanceSpec } from '../instance.ts';
import { hasCode } from '../suite/engine-suite-fixture.ts';
import { readKubeconfig } from './client/kubeconfig.ts';
import { KubernetesClient } from './client/kubernetes-client.ts';
import type { KubernetesObject } from './client/list-watch.ts';
import { KubernetesEngine } from './kubernetes-engine.ts';
import { testEngineOptions } from './kubernetes-engine.fixture.ts';

await withKubernetes(({ kubeconfig }) => {
  describe('the Kubernetes engine by itself', () => {
    const folder = mkdtempSync(join(tmpdir(), 'berth-kubernetes-own-'));
    const options = testEngineOptions(folder);
    const { namespace = '' } = options;
    const admin = new KubernetesClient(() => readKubeconfig(kubeconfig));
    let engine: KubernetesEngine;
    let count = 0;

    before(async () => {
      engine = new KubernetesEngine({ ...options, scheduleTimeoutMs: 1000 });
      await engine.list();
    });
    after(async () => {
      for (const { id } of await engine.list()) await engine.remove(id);
      await engine.close();
      await admin.delete(`/api/v1/namespaces/${namespace}`);
      admin.close();
      rmSync(folder, { recursive: true });
    });

    function spec(script: string, more: Partial<InstanceSpec> = {}): InstanceSpec {
      count += 1;
      return {
        id: `own${count}`,
        labels: { account: 'acc' },
        image: KUBERNETES_TEST_IMAGE,
        command: { entrypoint: ['sh', '-c'], cmd: [script] },
        env: {},
        ports: [],
        mounts: [],
        cpu: 1,
        memoryInGb: 0.25,
        gpus: null,
        containerDiskInGb: 1,
        ...more,
      };
    }

    test('a network policy that somebody deletes is written again', async () => {
      const wanted = spec('sleep 600', { labels: { account: 'guarded' } });
      await engine.start(wanted);
      const path = `/apis/networking.k8s.io/v1/namespaces/${namespace}/networkpolicies`;
      const policies = async (): Promise<KubernetesObject['metadata'][]> => {
        const { items } = await admin.get<{ items: KubernetesObject[] }>(path);
        return items.map(({ metadata }) => metadata).filter(({ name }) => name.endsWith('account-guarded'));
      };
      const [written] = await policies();
      assert.ok(written);
      await admin.delete(`${path}/${written.name}`);
      await waitFor('it is there again', async () => {
        const [again] = await policies();
        return again !== undefined && again.uid !== written.uid;
      });
      await engine.remove(wanted.id);
      await admin.delete(`${path}/${written.name}`);
      // The policy of an account without pods is written with its next pod.
      await engine.start(wanted);
      await waitFor('it is there', async () => (await policies()).length === 1);
      await engine.remove(wanted.id);
    });

    test('running out of memory is logged', async () => {
      const eater = spec('', {
        command: {
          entrypoint: ['node', '-e'],
          cmd: ['const kept = []; for (;;) kept.push(Buffer.alloc(10_000_000, 1))'],
        },
        memoryInGb: 0.1,
      });
      await engine.start(eater);
      const lines = await Array.fromAsync(engine.logs(eater.id, { follow: true, source: 'system' }));
      assert.deepEqual(
        lines.slice(-2).map(({ line }) => line),
        ['It ran out of memory.', 'Ended with exit code 137 (SIGKILL).'],
      );
      await engine.remove(eater.id);
    });

    test('what no node has room for is refused with the resource, and leaves nothing', async () => {
      await assert.rejects(
        engine.start(spec('true', { memoryInGb: 100_000 })),
        hasCode('capacity', /none of 2 has free memory/),
      );
      await assert.rejects(
        engine.start(spec('true', { gpus: { typeId: 'NVIDIA L4', count: 1 } })),
        hasCode('capacity', /nvidia\.com\/gpu|wanted GPU/),
      );
    });

    test('GPUs are known from the labels of nodes, asked for, and counted', async () => {
      // As the device plugin and GPU feature discovery say it.
      const resource = { 'nvidia.com/gpu': '2' };
      await admin.merge('/api/v1/nodes/node-0', {
        metadata: { labels: { 'nvidia.com/gpu.product': 'NVIDIA-A40' } },
      });
      await admin.merge('/api/v1/nodes/node-0/status', {
        status: { capacity: resource, allocatable: resource },
      });
      const gpuEngine = new KubernetesEngine({ ...options, scheduleTimeoutMs: 1000 });
      const free = async (): Promise<unknown> =>
        (await gpuEngine.capacity()).gpus.map(({ gpuTypeId, total, free: left }) => [gpuTypeId, total, left]);
      assert.deepEqual(await free(), [['NVIDIA A40', 2, 2]]);
      const wanted = spec('echo GPUs: $NVIDIA_VISIBLE_DEVICES; sleep 600', {
        gpus: { typeId: 'NVIDIA A40', count: 2 },
      });
      await gpuEngine.start(wanted);
      await waitFor('both are taken', async () => JSON.stringify(await free()) === '[["NVIDIA A40",2,0]]');
      const node = (await gpuEngine.capacity()).nodes?.find(({ name }) => name === 'node-0');
      assert.deepEqual([node?.ready, node?.schedulable, node?.gpus[0]?.free], [true, true, 0]);
      await assert.rejects(
        gpuEngine.start(spec('true', { gpus: { typeId: 'NVIDIA A40', count: 1 } })),
        hasCode('capacity', /nvidia\.com\/gpu/),
      );
      await gpuEngine.remove(wanted.id);
      await gpuEngine.close();
      await admin.merge('/api/v1/nodes/node-0', { metadata: { labels: { 'nvidia.com/gpu.product': null } } });
    });

    test('an interruptible pod makes room for one of higher priority, and says so', async () => {
      const classes = '/apis/scheduling.k8s.io/v1/priorityclasses';
      const [low, high] = ['low', 'high'].map((name) => `${namespace}-${name}`) as [string, string];
      for (const [name, value] of [
        [low, 1],
        [high, 1000],
      ] as const)
        await admin.create(classes, {
          apiVersion: 'scheduling.k8s.io/v1',
          kind: 'PriorityClass',
          metadata: { name },
          value,
        });
      const resource = { 'example.com/slot': '1' };
      await admin.merge('/api/v1/nodes/node-0/status', {
        status: { capacity: resource, allocatable: resource },
      });
      await admin.merge('/api/v1/nodes/node-0', {
        metadata: { labels: { 'example.com/slots': 'NVIDIA-A40' } },
      });
      const shared = new KubernetesEngine({
        ...options,
        gpuResource: 'example.com/slot',
        gpuLabel: 'example.com/slots',
        priorityClass: high,
        interruptiblePriorityClass: low,
        scheduleTimeoutMs: 60_000,
      });
      const gpus = { typeId: 'NVIDIA A40', count: 1 };
      const first = spec('trap "exit 7" TERM; sleep 600 & wait', { gpus, interruptible: true });
      await shared.start(first);
      const ended = new Promise<string | undefined>((resolve) => {
        const unsubscribe = shared.watch((event) => {
          if (event.id !== first.id || event.status !== 'exited') return;
          unsubscribe();
          resolve(event.disrupted);
        });
      });
      const second = spec('sleep 600', { gpus });
      await shared.start(second);
      assert.equal(await ended, 'It made room for a pod of higher priority.');
      for (const { id } of [first, second]) await shared.remove(id);
      await shared.close();
      for (const name of [low, high]) await admin.delete(`${classes}/${name}`);
    });

    test('a port is reached through the API server, where there is no route to the pod', async () => {
      const outside = new KubernetesEngine({ ...options, portForwarding: true });
      const server = `require('node:http').createServer(async (request, response) => {
        let size = 0;
        for await (const chunk of request) size += chunk.length;
        response.end(Buffer.alloc(size, 'x'));
      }).listen(8080)`;
      const wanted = spec('', {
        command: { entrypoint: ['node', '-e'], cmd: [server] },
        ports: [
          { port: 8080, protocol: 'http' },
          { port: 8081, protocol: 'http' },
        ],
      });
      after(() => outside.close());
      await outside.start(wanted);
      const address = await waitFor('the port answers', () => outside.address(wanted.id, 8080));
      assert.equal(address.host, '127.0.0.1');
      assert.equal(await outside.address(wanted.id, 8081), undefined, 'nothing listens there');
      const body = Buffer.alloc(3_000_000, 'y');
      const answers = await Promise.all(
        [1, 2, 3].map(() => fetch(`http://127.0.0.1:${address.port}/`, { method: 'POST', body })),
      );
      for (const answer of answers) assert.equal((await answer.arrayBuffer()).byteLength, body.length);
      await outside.remove(wanted.id);
    });

    test('files are copied into and out of a pod', async () => {
      const running = spec('sleep 600');
      await engine.start(running);
      const files = Readable.from([Buffer.concat([...fileArchive({ 'a.txt': Buffer.from('hello') })])]);
      await engine.files.write(running.id, '/tmp/new/folder', files);
      const about = await engine.files.stat(running.id, '/tmp/new/folder/a.txt');
      assert.deepEqual([about?.kind, about?.size], ['file', 5]);
      assert.equal(await engine.files.stat(running.id, '/tmp/absent'), undefined);
      assert.match(
        await text(await engine.files.read(running.id, '/tmp/new/folder')),
        /folder\/a\.txt.*hello/s,
      );
      await engine.remove(running.id);
    });
  });
});
