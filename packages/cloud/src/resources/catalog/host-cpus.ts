import type { Capacity } from '../../domain/placement/engine-capacity.ts';

/** A CPU model of the host machines. It cannot be ordered; it only describes the machines. */
export interface HostCpu {
  id: string;
  name: string;
  manufacturer: string;
  cores: number;
  threadsPerCore: number;
}

/** The CPU models, without duplicates. */
export function hostCpusOf(capacities: readonly Capacity[]): HostCpu[] {
  const models = new Map(capacities.map(({ cpu }) => [cpu.model, cpu]));
  return [...models.values()].map(({ model, cores, threads }) => ({
    id: model,
    name: model,
    manufacturer: manufacturerOf(model),
    cores,
    threadsPerCore: Math.max(1, Math.round(threads / cores)),
  }));
}

function manufacturerOf(model: string): string {
  return /\b(Intel|AMD|Apple|Ampere)\b/i.exec(model)?.[1] ?? 'unknown';
}
