import { type Clock, systemClock } from '../../support/clock.ts';
import type { Capacity, Engine, GpuCapacity } from '../engine.ts';
import { type Machine, readMachine } from './machine.ts';
import { refreshed } from './refreshed.ts';

/** How old what is known of the machine may be. */
const MACHINE_LIFETIME_MS = 60_000;

export interface ProcessEngineParts {
  /** Offered where the machine has no real GPU. */
  virtualGpus: readonly GpuCapacity[];
  clock?: Clock;
  readMachine?: () => Promise<Machine>;
}

/** Runs instances as processes of this machine. */
export class ProcessEngine implements Engine {
  readonly kind = 'process';
  readonly #machine: () => Promise<Machine>;
  readonly #virtualGpus: readonly GpuCapacity[];

  constructor(parts: ProcessEngineParts) {
    this.#machine = refreshed(parts.readMachine ?? readMachine, MACHINE_LIFETIME_MS, parts.clock ?? systemClock);
    this.#virtualGpus = parts.virtualGpus;
  }

  async capacity(): Promise<Capacity> {
    const machine = await this.#machine();
    const { cpu, memoryInGb } = machine;
    return { cpu, memoryInGb, gpus: this.#gpus(machine) };
  }

  /** Virtual GPUs never stand beside real ones, nor in for real ones whose driver is only slow to answer. */
  #gpus({ gpus, gpusKnown }: Machine): readonly GpuCapacity[] {
    return gpus.length === 0 && gpusKnown ? this.#virtualGpus : gpus;
  }
}
