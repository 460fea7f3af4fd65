import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hostCpusOf } from './host-cpus.ts';
import { NO_CAPACITY } from '../../domain/placement/engine-capacity.ts';

const host = (model: string, cores: number, threads: number) => ({
  ...NO_CAPACITY,
  cpu: { model, cores, threads },
});

test('each model is listed once', () => {
  const epyc = host('AMD EPYC 7763 64-Core Processor', 64, 128);
  assert.deepEqual(hostCpusOf([epyc, epyc, host('Intel(R) Xeon(R) E5', 4, 4), host('riscv', 2, 2)]), [
    {
      id: 'AMD EPYC 7763 64-Core Processor',
      name: 'AMD EPYC 7763 64-Core Processor',
      manufacturer: 'AMD',
      cores: 64,
      threadsPerCore: 2,
    },
    {
      id: 'Intel(R) Xeon(R) E5',
      name: 'Intel(R) Xeon(R) E5',
      manufacturer: 'Intel',
      cores: 4,
      threadsPerCore: 1,
    },
    { id: 'riscv', name: 'riscv', manufacturer: 'unknown', cores: 2, threadsPerCore: 1 },
  ]);
});
