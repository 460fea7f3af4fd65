import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceEngine } from '../../engines/engine.ts';
import type { Instance } from '../../engines/instance.ts';
import type { WorkerStore } from '../../store/worker-store.ts';
import { createLog } from '../../support/log.ts';
import { EngineConnections } from '../engine-connections.ts';
import { adoptWorkers, isOrphanedWorker } from './worker-adoption.ts';
import { WorkerRegistry } from './worker-registry.ts';
import type { WorkerTermination } from './worker-termination.ts';
import { sampleWorker } from './worker.fixture.ts';

const log = createLog({ level: 'silent', format: 'json' });

test('instances without a worker are removed, except those that are ending or of another data center', async () => {
  const removed: string[] = [];
  const instance = (id: string, kind: string): Instance => ({
    id,
    labels: { kind },
    image: 'i',
    handle: { engine: 'docker', id, state: {} },
    status: 'running',
    startedAt: 1,
    endedAt: null,
    exitCode: null,
    signal: null,
  });
  const shared = {
    watch: () => () => undefined,
    list: async () => [
      instance('mine', 'worker'),
      instance('of B', 'worker'),
      instance('of C', 'worker'),
      instance('nobody', 'worker'),
      instance('ending', 'worker'),
      instance('pod', 'pod'),
    ],
    remove: async (id: string) => void removed.push(id),
  } as unknown as InstanceEngine;
  const other = { watch: () => () => undefined, list: async () => [] } as unknown as InstanceEngine;
  const engines = new Map([
    ['A', shared],
    ['B', shared],
    ['C', other],
  ]);
  const live = ['mine', 'of B', 'of C'].map((id, index) =>
    sampleWorker(id, {
      dataCenterId: ['A', 'B', 'C'][index] ?? '',
      state: 'ready',
      handle: '{}',
      startedAt: 1,
    }),
  );
  const registry = new WorkerRegistry({ saveWorker: async () => undefined } as unknown as WorkerStore, log);
  const termination = { isPending: (id: string) => id === 'ending' } as unknown as WorkerTermination;
  const deps = { registry, engines, termination };
  const connections = new EngineConnections({
    engines: new Map([
      ['A', shared],
      ['B', shared],
    ]),
    owner: {
      kind: 'worker',
      adopt: async (engine, instances, isCurrent) => {
        await adoptWorkers(engine, instances, live, deps, isCurrent);
        return [];
      },
      isOrphan: async (found, engine) => isOrphanedWorker(found, engine, deps),
      onInstanceExited: () => undefined,
    },
    enqueue: () => undefined,
    log,
  });
  await connections.open();
  assert.deepEqual(removed, ['of C', 'nobody']);
  assert.deepEqual(
    ['A', 'B', 'C'].map((id) => connections.isConnected(id)),
    [true, true, false],
  );
  connections.close();
});
