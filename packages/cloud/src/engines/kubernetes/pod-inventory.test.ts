import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { systemClock } from '../../support/clock.ts';
import { KeyedMutex } from '../../support/keyed-mutex.ts';
import { LogRetention } from '../logs/log-retention.ts';
import { StartAttempts } from '../start-attempts.ts';
import { KubernetesClient } from './client/kubernetes-client.ts';
import { KubernetesApiError } from './client/kubernetes.errors.ts';
import type { PodObject } from './kubernetes-objects.ts';
import { PodInventory } from './pod-inventory.ts';
import { instanceMetadata, podName } from './pod-labels.ts';

const LONG_AGO = '2020-01-01T00:00:00Z';

/** An API server with these objects, without any output. */
class RecordingClient extends KubernetesClient {
  pods: PodObject[] = [];
  secrets: unknown[] = [];
  readonly deleted: string[] = [];

  constructor() {
    super(() => Promise.reject(new Error('there is no cluster')));
  }

  override async request<T>(method: string, path: string): Promise<T> {
    const name = path.split('/').at(-1) ?? '';
    if (method === 'DELETE') this.deleted.push(name);
    if (name === 'pods') return { items: this.pods, metadata: {} } as T;
    if (name === 'secrets') return { items: this.secrets, metadata: {} } as T;
    const found = this.pods.find(({ metadata }) => metadata.name === name);
    if (found === undefined) throw new KubernetesApiError(404, 'NotFound', name);
    return found as T;
  }

  override sharedStream(): Promise<never> {
    return Promise.reject(new KubernetesApiError(404, 'NotFound', 'no output'));
  }
}

function pod(id: string, uid: string, state: 'running' | 'waiting'): PodObject {
  const details = { id, image: 'image', labels: {}, ports: [], memoryInGb: 1, gpus: null };
  return {
    metadata: {
      name: podName('inst', id),
      uid,
      creationTimestamp: LONG_AGO,
      resourceVersion: '1',
      ...instanceMetadata('inst', 'K8S-1', details),
    },
    spec: { nodeName: 'node', containers: [] },
    status: {
      phase: state === 'running' ? 'Running' : 'Pending',
      containerStatuses: [
        { name: 'main', state: state === 'running' ? { running: { startedAt: LONG_AGO } } : { waiting: {} } },
      ],
    },
  };
}

describe('the pods that a server knows', () => {
  let client: RecordingClient;
  let isLeading: boolean;
  let folder: string;
  let inventory: PodInventory;
  beforeEach(async () => {
    client = new RecordingClient();
    isLeading = false;
    folder = await mkdtemp(join(tmpdir(), 'berth-inventory-'));
    inventory = new PodInventory({
      logs: new LogRetention(folder, 1000, systemClock),
      mutex: new KeyedMutex(),
      starts: new StartAttempts(),
      onEvent: () => undefined,
      onProblem: () => undefined,
      client,
      namespace: 'berth',
      installation: 'inst',
      dataCenterId: 'K8S-1',
      clock: systemClock,
      startTimeoutMs: 1000,
      isLeading: () => isLeading,
      forwards: undefined,
    });
  });
  afterEach(async () => {
    await inventory.close();
    await rm(folder, { recursive: true });
  });

  test('one that does not lead captures nothing and deletes nothing, until it leads', async () => {
    client.pods = [pod('one', 'uid-1', 'running'), pod('two', 'uid-2', 'waiting')];
    client.secrets = [{ metadata: { name: 'gone-env', uid: 'uid-3', creationTimestamp: LONG_AGO } }];
    await inventory.open();
    await inventory.refresh();
    await inventory.handleChange('ADDED', pod('one', 'uid-1', 'running'));
    assert.deepEqual([inventory.all(), client.deleted, await readdir(folder)], [[], [], []]);
    isLeading = true;
    await inventory.open();
    assert.deepEqual(
      inventory.all().map(({ id, isRunning }) => [id, isRunning]),
      [['one', true]],
    );
    assert.deepEqual(client.deleted, [podName('inst', 'two'), 'gone-env']);
    assert.deepEqual(await readdir(folder), ['one']);
  });

  test('what another server has started anew meanwhile is adopted by one that leads again', async () => {
    isLeading = true;
    client.pods = [pod('one', 'uid-1', 'running')];
    await inventory.open();
    isLeading = false;
    client.pods = [pod('one', 'uid-2', 'running')];
    isLeading = true;
    await inventory.refresh();
    assert.deepEqual(
      inventory.all().map(({ uid, isRunning }) => [uid, isRunning]),
      [['uid-2', true]],
    );
  });

  test('one that leads no longer forgets the pods that are gone', async () => {
    isLeading = true;
    client.pods = [pod('one', 'uid-1', 'running')];
    await inventory.open();
    isLeading = false;
    client.pods = [];
    await inventory.refresh();
    assert.deepEqual(inventory.all(), []);
  });
});
