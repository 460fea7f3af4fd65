import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ProcessSelector } from './instance-processes.ts';
import { recentInstanceProcesses } from './instance-processes.ts';
import { residentBytes, TICKS_PER_SECOND } from './process-table.ts';

export interface ResourceSample {
  /** Processor time since the start. */
  cpuSeconds: number;
  memoryInBytes: number;
}

const MICROSECONDS = 1_000_000;

/** What an instance has used: by its cgroup where that counts, or else by its processes. */
export function sampleResources(belonging: ProcessSelector): ResourceSample {
  return (
    (belonging.cgroup === null ? undefined : sampleCgroup(belonging.cgroup)) ?? sampleProcesses(belonging)
  );
}

function sampleProcesses(belonging: ProcessSelector): ResourceSample {
  const members = recentInstanceProcesses(belonging);
  return {
    cpuSeconds: members.reduce((sum, { cpuTicks }) => sum + cpuTicks, 0) / TICKS_PER_SECOND,
    memoryInBytes: members.reduce((sum, { pid }) => sum + residentBytes(pid), 0),
  };
}

/** Undefined where the kernel does not count memory for it. */
export function sampleCgroup(cgroup: string): ResourceSample | undefined {
  try {
    const used = Number(read(cgroup, 'memory.current'));
    // Files that the kernel keeps in memory only as long as nobody needs the room do not count.
    const files = Number(/^inactive_file (\d+)$/m.exec(read(cgroup, 'memory.stat'))?.[1] ?? 0);
    const micros = Number(/^usage_usec (\d+)$/m.exec(read(cgroup, 'cpu.stat'))?.[1] ?? NaN);
    return Number.isFinite(micros)
      ? { cpuSeconds: micros / MICROSECONDS, memoryInBytes: files < used ? used - files : used }
      : undefined;
  } catch {
    return undefined;
  }
}

function read(cgroup: string, name: string): string {
  return readFileSync(join(cgroup, name), 'utf8');
}
