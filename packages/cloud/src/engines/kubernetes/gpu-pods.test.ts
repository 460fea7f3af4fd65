import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitFor } from '../../../../testing/src/wait-for.ts';
import type { Query } from './client/kubernetes-client.ts';
import { GpuPods } from './gpu-pods.ts';
import type { PodObject } from './kubernetes-objects.ts';
import { instanceMetadata } from './pod-labels.ts';

const RESOURCE = 'nvidia.com/gpu';

function pod(name: string, gpus: number, phase: 'Running' | 'Pending' | 'Succeeded' = 'Running'): PodObject {
  const requests = { cpu: '1', ...(gpus > 0 && { [RESOURCE]: String(gpus) }) };
  return {
    metadata: { name, uid: name, resourceVersion: '1' },
    spec: { nodeName: 'node', containers: [{ name: 'main', image: 'image', resources: { requests } }] },
    status: { phase },
  };
}

/** An API server with these pods, whose changes are pushed. */
class WatchedPods {
  readonly #lines: string[] = [];
  #wake = (): void => undefined;
  #pods: PodObject[];

  constructor(pods: PodObject[]) {
    this.#pods = pods;
  }

  push(type: string, object: PodObject): void {
    this.#lines.push(`${JSON.stringify({ type, object })}\n`);
    this.#wake();
  }

  get<T>(): Promise<T> {
    return Promise.resolve({ metadata: { resourceVersion: '1' }, items: this.#pods } as T);
  }

  stream(_path: string, _query: Query, signal: AbortSignal): Promise<AsyncIterable<Buffer>> {
    return Promise.resolve(this.#events(signal));
  }

  async *#events(signal: AbortSignal): AsyncGenerator<Buffer> {
    while (!signal.aborted) {
      for (const line of this.#lines.splice(0)) yield Buffer.from(line);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        signal.addEventListener('abort', () => resolve());
      });
    }
  }
}

test('pods with GPUs, or that wait for some, are known as they change, and no others', async () => {
  const details = {
    id: 'w',
    image: 'i',
    labels: {},
    ports: [],
    memoryInGb: 1,
    gpus: { typeId: 'NVIDIA L4', count: 2 },
  };
  const waiting = { ...pod('waiting', 0, 'Pending'), spec: { containers: [] } };
  Object.assign(waiting.metadata, instanceMetadata('inst', 'K8S-1', details));
  const client = new WatchedPods([pod('one', 1), pod('none', 0), pod('ended', 4, 'Succeeded'), waiting]);
  const pods = new GpuPods({ client, namespace: 'berth', gpuResource: RESOURCE, onProblem: () => undefined });
  const names = async (): Promise<string[]> => (await pods.list()).map(({ metadata }) => metadata.name);
  assert.deepEqual(await names(), ['one', 'waiting']);
  assert.deepEqual((await pods.list())[0]?.spec, {
    nodeName: 'node',
    containers: [{ name: 'main', resources: { requests: { [RESOURCE]: '1' } } }],
  });
  client.push('MODIFIED', pod('one', 1, 'Succeeded'));
  client.push('ADDED', pod('two', 2));
  await waitFor('the changes are known', async () => (await names()).join() === 'waiting,two');
  client.push('DELETED', pod('two', 2));
  await waitFor('the deletion is known', async () => (await names()).join() === 'waiting');
  await pods.close();
});

test('while the cluster does not answer, that is an error', async () => {
  const client = { ...new WatchedPods([]), get: () => Promise.reject(new Error('no route to host')) };
  const pods = new GpuPods({
    client: client as unknown as WatchedPods,
    namespace: 'berth',
    gpuResource: RESOURCE,
    onProblem: () => undefined,
  });
  await assert.rejects(pods.list(), /no route to host/);
  await assert.rejects(pods.list(), /no route to host/);
  await pods.close();
});
