import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceEngine } from '../../engines/engine.ts';
import type { Instance } from '../../engines/instance.ts';
import { orphanedInstances } from './worker-adoption.ts';
import { sampleWorker } from './worker.fixture.ts';

test('strays are instances of workers without a record, but not those of a data center that shares the engine', () => {
  const [shared, other] = [{}, {}] as InstanceEngine[];
  const engines = new Map([
    ['A', shared],
    ['B', shared],
    ['C', other],
  ] as [string, InstanceEngine][]);
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
  const living = [
    sampleWorker('mine', { dataCenterId: 'A' }),
    sampleWorker('of B', { dataCenterId: 'B' }),
    sampleWorker('of C', { dataCenterId: 'C' }),
  ];
  const running = [
    instance('mine', 'worker'),
    instance('of B', 'worker'),
    instance('of C', 'worker'),
    instance('nobody', 'worker'),
    instance('pod', 'pod'),
  ];
  assert.deepEqual(
    orphanedInstances(running, living, 'A', engines).map(({ id }) => id),
    ['of C', 'nobody'],
  );
});
