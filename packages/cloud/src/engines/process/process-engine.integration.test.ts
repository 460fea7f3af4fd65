import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ManualClock } from '../../support/clock.ts';
import { engineSuite } from '../suite/engine.suite.ts';
import { GpuAllocator } from '../gpu-allocator.ts';
import type { Machine } from '../machine.ts';
import { ProcessEngine } from './process-engine.ts';
import { supervisionProblem } from './supervise.ts';
import { VIRTUAL_GPU } from './process-test-engine.ts';
import type { GpuCapacity } from '../../domain/placement/engine-capacity.ts';

const real: GpuCapacity = {
  gpuTypeId: 'NVIDIA H200',
  total: 1,
  free: 1,
  virtual: false,
  cudaVersion: '13.0',
  memoryInGb: 140,
};
const virtual: GpuCapacity = {
  gpuTypeId: 'NVIDIA L4',
  total: 2,
  free: 2,
  virtual: true,
  cudaVersion: null,
  memoryInGb: 24,
};
const bare: Machine = {
  cpu: { model: 'Sample CPU', cores: 2, threads: 2 },
  memoryInGb: 8,
  gpus: [],
  gpuProblem: null,
  gpusKnown: true,
};

async function gpusOf(machine: Machine): Promise<readonly GpuCapacity[]> {
  const engine = new ProcessEngine({ virtualGpus: [virtual], readMachine: () => Promise.resolve(machine) });
  return (await engine.capacity()).gpus;
}

describe('the process engine', () => {
  test('offers virtual GPUs where there is no real one', async () => {
    assert.deepEqual(await gpusOf(bare), [virtual]);
    assert.deepEqual(await gpusOf({ ...bare, gpuProblem: 'No devices were found' }), [virtual]);
  });

  test('offers only the real GPUs where there are some', async () => {
    assert.deepEqual(await gpusOf({ ...bare, gpus: [real] }), [real]);
  });

  test('offers no virtual GPU while real ones may be hidden', async () => {
    assert.deepEqual(await gpusOf({ ...bare, gpuProblem: 'no answer', gpusKnown: false }), []);
  });

  test('does not offer a GPU that another engine of the machine has allocated', async () => {
    const gpus = new GpuAllocator();
    gpus.reserve('container', { typeId: virtual.gpuTypeId, indexes: [0] });
    const engine = new ProcessEngine({
      virtualGpus: [virtual],
      gpus,
      readMachine: () => Promise.resolve(bare),
    });
    assert.deepEqual(
      (await engine.capacity()).gpus.map(({ free }) => free),
      [1],
    );
  });

  test('reads the machine on demand, and once a minute at most', async () => {
    const clock = new ManualClock();
    let readings = 0;
    const engine = new ProcessEngine({
      virtualGpus: [],
      clock,
      freeMemory: () => 3.59 * 1024 ** 3,
      readMachine: () => {
        readings += 1;
        return Promise.resolve(bare);
      },
    });
    assert.equal(readings, 0);
    assert.deepEqual(await engine.capacity(), {
      cpu: bare.cpu,
      memoryInGb: 8,
      freeMemoryInGb: 3.5,
      gpus: [],
    });
    clock.advance(59_999);
    await engine.capacity();
    assert.equal(readings, 1);
    clock.advance(1);
    await engine.capacity();
    assert.equal(readings, 2);
  });
});

/** A port probe disconnects without reading, so socket errors are ignored. */
const SERVER =
  "require('node:net').createServer((socket) => socket.on('error', () => " +
  "undefined).end('hello')).listen(Number(process.env.PORT), '127.0.0.1')";

if (supervisionProblem() === undefined) {
  engineSuite('the process engine', {
    module: new URL('process-test-engine.ts', import.meta.url),
    shellImage: 'local/shell',
    unsupportedImage: 'docker.io/library/alpine:3',
    gpuTypeId: VIRTUAL_GPU.gpuTypeId,
    listenCommand: ['node', '-e', SERVER],
  });
}
