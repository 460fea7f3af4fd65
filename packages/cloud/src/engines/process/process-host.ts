import type { Capacity, GpuCapacity } from '../../domain/placement/engine-capacity.ts';
import type { Clock } from '../../support/clock.ts';
import { staleWhileRevalidate } from '../../support/stale-while-revalidate.ts';
import { sequentialGpuIndexes } from '../gpu-allocator.ts';
import type { GpuAllocator } from '../gpu-allocator.ts';
import { readMachine } from '../machine.ts';
import type { Machine } from '../machine.ts';
import type { ProcessEngineOptions } from './process-engine-options.ts';
import type { HostResources } from './process-launch.ts';

/** How long a reading of the machine is cached. */
const MACHINE_CACHE_TTL_MS = 60_000;
const BYTES_PER_GB = 1024 ** 3;

/** What this machine has for instances: processors, memory and GPUs, real ones or virtual ones. */
export class ProcessHost {
  readonly machine: () => Promise<Machine>;
  readonly #virtualGpus: readonly GpuCapacity[];
  readonly #freeMemory: () => number;

  constructor(
    options: Pick<ProcessEngineOptions, 'readMachine' | 'virtualGpus' | 'freeMemory' | 'log'>,
    clock: Clock,
  ) {
    this.machine = staleWhileRevalidate(
      options.readMachine ?? readMachine,
      MACHINE_CACHE_TTL_MS,
      clock,
      (error) => options.log?.warn({ err: error }, 'the resources of the machine could not be read'),
    );
    this.#virtualGpus = options.virtualGpus;
    this.#freeMemory = options.freeMemory ?? (() => process.availableMemory());
  }

  async capacity(gpus: GpuAllocator): Promise<Capacity> {
    const machine = await this.machine();
    const { cpu, memoryInGb } = machine;
    return {
      cpu,
      memoryInGb,
      freeMemoryInGb: Math.floor((10 * this.#freeMemory()) / BYTES_PER_GB) / 10,
      gpus: gpus.withFreeCounts(this.#gpus(machine)),
    };
  }

  async resources(): Promise<HostResources> {
    const machine = await this.machine();
    const gpus = this.#gpus(machine);
    return {
      memoryInGb: machine.memoryInGb,
      freeMemoryInBytes: this.#freeMemory(),
      gpus,
      gpuIndexes: (gpus === machine.gpus ? machine.gpuIndexes : undefined) ?? sequentialGpuIndexes(gpus),
    };
  }

  /**
   * Virtual GPUs are offered only where there are no real ones, and not while the GPU driver fails to answer.
   */
  #gpus({ gpus, gpusKnown }: Machine): readonly GpuCapacity[] {
    return gpus.length === 0 && gpusKnown ? this.#virtualGpus : gpus;
  }
}
