const NANOSECONDS = 1_000_000_000;

/** As much of the daemon's counts as is needed here. */
export interface ContainerStats {
  read?: string;
  cpu_stats?: { cpu_usage?: { total_usage?: number } };
  memory_stats?: { usage?: number; stats?: { inactive_file?: number; total_inactive_file?: number } };
}

/** Processor time used since the start. */
export function cpuSecondsOf({ cpu_stats: cpu }: ContainerStats): number {
  return (cpu?.cpu_usage?.total_usage ?? 0) / NANOSECONDS;
}

/** Files that the kernel keeps in memory only as long as nobody needs the room do not count. */
export function memoryOf({ memory_stats: memory }: ContainerStats): number {
  const files = memory?.stats?.inactive_file ?? memory?.stats?.total_inactive_file ?? 0;
  const used = memory?.usage ?? 0;
  return files < used ? used - files : used;
}
