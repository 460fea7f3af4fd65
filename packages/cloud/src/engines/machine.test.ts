import assert from 'node:assert/strict';
import { cpus } from 'node:os';
import { describe, test } from 'node:test';
import { gpuCapacities, gpuIndexesByType, readMachine } from './machine.ts';
import type { NvidiaSmiResult } from './nvidia-smi.ts';

const none: NvidiaSmiResult = { gpus: [], cudaVersion: null, problem: null, answered: true };

function nvidia(name: string, memoryInMib: number) {
  return { name, memoryInMib, driverVersion: '580.95.05' };
}

describe('the machine', () => {
  test('GPUs of one name are one entry', () => {
    const gpus = [
      nvidia('NVIDIA H200', 143771),
      nvidia('NVIDIA GeForce RTX 3060', 12288),
      nvidia('NVIDIA H200', 143771),
    ];
    assert.deepEqual(gpuCapacities({ ...none, gpus, cudaVersion: '13.0' }), [
      { gpuTypeId: 'NVIDIA H200', total: 2, free: 2, virtual: false, cudaVersion: '13.0', memoryInGb: 140 },
      {
        gpuTypeId: 'NVIDIA GeForce RTX 3060',
        total: 1,
        free: 1,
        virtual: false,
        cudaVersion: '13.0',
        memoryInGb: 12,
      },
    ]);
  });

  test('GPUs are numbered as the driver lists them', () => {
    const gpus = [
      nvidia('NVIDIA H200', 143771),
      nvidia('NVIDIA GeForce RTX 3060', 12288),
      nvidia('NVIDIA H200', 143771),
    ];
    assert.deepEqual(
      [...gpuIndexesByType({ gpus })],
      [
        ['NVIDIA H200', [0, 2]],
        ['NVIDIA GeForce RTX 3060', [1]],
      ],
    );
  });

  test('reads the CPU and memory of this machine', async () => {
    const machine = await readMachine(() => Promise.resolve(none));
    assert.equal(machine.cpu.threads, cpus().length);
    assert.ok(machine.cpu.model.length > 0);
    assert.ok(Number.isInteger(machine.memoryInGb) && machine.memoryInGb >= 1);
    assert.deepEqual([machine.gpus, machine.gpuProblem, machine.gpusKnown], [[], null, true]);
  });

  test('a problem with the GPUs is reported', async () => {
    const machine = await readMachine(() =>
      Promise.resolve({ ...none, problem: 'too slow', answered: false }),
    );
    assert.deepEqual([machine.gpuProblem, machine.gpusKnown], ['too slow', false]);
  });
});
