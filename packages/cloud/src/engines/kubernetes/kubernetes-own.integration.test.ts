import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { Readable } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import { fileArchive } from '../../../../testing/src/docker-test-image.mjs';
import { KUBERNETES_TEST_IMAGE } from '../../../../testing/src/kubernetes/kubernetes-cluster.ts';
import { withKubernetes } from '../../../../testing/src/kubernetes/with-kubernetes.ts';
import type { InstanceSpec } from '../instance.ts';
import { hasCode } from '../suite/engine-fixture.ts';
import { readKubeconfig } from './client/kubeconfig.ts';
import { KubernetesClient } from './client/kubernetes-client.ts';
import { KubernetesEngine } from './kubernetes-engine.ts';
import { testEngineOptions } from './kubernetes-test-engine.ts';

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
        hasCode('capacity', /none of 1 has free memory/),
      );
      await assert.rejects(
        engine.start(spec('true', { gpus: { typeId: 'NVIDIA L4', count: 1 } })),
        hasCode('capacity', /nvidia\.com\/gpu|wanted GPU/),
      );
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
