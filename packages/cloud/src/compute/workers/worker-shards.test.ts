import assert from 'node:assert/strict';
import { test } from 'node:test';
import { workerShardOf } from '../../domain/endpoints/worker-shards.ts';
import type { InstanceEngine } from '../../engines/engine.ts';
import { ManualClock } from '../../support/clock.ts';
import { EventBus } from '../../support/event-bus.ts';
import { createLog } from '../../support/log.ts';
import type { WorkerDeps } from './worker-components.ts';
import { createWorkerShards } from './worker-shards.ts';
import { sampleWorker } from './worker.fixture.ts';

const log = createLog({ level: 'silent', format: 'json' });

test('a shard adopts the workers of its endpoints, and leaves instances of others alone', async () => {
  const endpointIds = ['endpoint1', 'endpoint2'];
  assert.deepEqual(
    endpointIds.map((id) => workerShardOf(id, 2)),
    [1, 0],
  );
  const instance = (id: string, endpoint: string) => ({
    id,
    status: 'running',
    startedAt: 1,
    labels: { kind: 'worker', endpoint },
  });
  const removed: string[] = [];
  const engine = {
    list: async () => [
      ...endpointIds.flatMap((id) => [instance(`worker of ${id}`, id), instance(`orphan of ${id}`, id)]),
    ],
    remove: async (id: string) => void removed.push(id),
    watch: () => () => undefined,
  } as unknown as InstanceEngine;
  const asked: string[] = [];
  const shards = createWorkerShards({
    count: 2,
    isElected: (shard) => shard === 1,
    deps: () =>
      ({
        store: {
          listLiveWorkers: async () =>
            endpointIds.map((endpointId) =>
              sampleWorker(`worker of ${endpointId}`, {
                endpointId,
                state: 'ready',
                handle: '{}',
                startedAt: 1,
              }),
            ),
          listActiveEndpoints: async () => endpointIds,
          listQueuedEndpoints: async () => endpointIds,
          deleteEndedWorkers: async () => assert.fail('only the first shard forgets workers'),
        },
        queue: {},
        engines: new Map([['LOCAL-1', engine]]),
        events: new EventBus(),
        endpoint: async (id: string) => {
          asked.push(id);
          throw new Error('not now');
        },
        clock: new ManualClock(),
        log,
      }) as unknown as WorkerDeps,
  });
  const held = shards.of('endpoint1');
  assert.equal(held, shards.all[1]);
  assert.deepEqual([shards.of('endpoint2').isElected(), held.isElected()], [false, true]);

  await held.reconciler.start();
  assert.deepEqual(held.components.registry.endpointIds(), ['endpoint1']);
  assert.deepEqual(removed, ['orphan of endpoint1']);
  for (const id of endpointIds) held.reconciler.wake(id);
  await held.reconciler.queue.whenAllDone();
  assert.deepEqual(new Set(asked), new Set(['endpoint1']));
  await held.reconciler.close();
});
