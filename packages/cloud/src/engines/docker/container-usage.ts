import type { ContainerStats } from './client/docker-objects.ts';

const NANOSECONDS_PER_SECOND = 1_000_000_000;

/** CPU time since the start. */
export function cpuSecondsOf({ cpu_stats: cpu }: ContainerStats): number {
  return (cpu?.cpu_usage?.total_usage ?? 0) / NANOSECONDS_PER_SECOND;
}

/** Inactive page cache does not count: the kernel frees it on demand. */
export function memoryOf({ memory_stats: memory }: ContainerStats): number {
  const inactiveFiles = memory?.stats?.inactive_file ?? memory?.stats?.total_inactive_file ?? 0;
  const used = memory?.usage ?? 0;
  return inactiveFiles < used ? used - inactiveFiles : used;
}
