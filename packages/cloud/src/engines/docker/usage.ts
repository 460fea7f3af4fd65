import type { Usage } from '../instance.ts';

const NANOSECONDS = 1_000_000_000;

/** As much of the daemon's counts as is needed here. */
export interface StatsAnswer {
  read?: string;
  cpu_stats?: { cpu_usage?: { total_usage?: number } };
  memory_stats?: { usage?: number; stats?: { inactive_file?: number; total_inactive_file?: number } };
}

export interface CpuSample {
  /** Processor time used since the start, in seconds. */
  cpuSeconds: number;
  at: number;
}

/** What a container used since an earlier sample. */
export function usageSince(before: CpuSample, stats: StatsAnswer, now: number): { usage: Omit<Usage, 'gpus'>; sample: CpuSample } {
  const cpuSeconds = (stats.cpu_stats?.cpu_usage?.total_usage ?? 0) / NANOSECONDS;
  const seconds = Math.max((now - before.at) / 1000, 0.01);
  return { usage: { cpu: Math.max(0, cpuSeconds - before.cpuSeconds) / seconds, memoryInBytes: memoryOf(stats) }, sample: { cpuSeconds, at: now } };
}

/** Files that the kernel keeps in memory only as long as nobody needs the room do not count. */
function memoryOf({ memory_stats: memory }: StatsAnswer): number {
  const files = memory?.stats?.inactive_file ?? memory?.stats?.total_inactive_file ?? 0;
  const used = memory?.usage ?? 0;
  return files < used ? used - files : used;
}
