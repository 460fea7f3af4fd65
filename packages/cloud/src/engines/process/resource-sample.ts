import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ProcessSelector } from './instance-processes.ts';
import { recentInstanceProcesses } from './instance-processes.ts';
import { residentBytes, TICKS_PER_SECOND } from './process-table.ts';

export interface ResourceSample {
  /** CPU time since the start. */
  cpuSeconds: number;
  memoryInBytes: number;
}

const MICROSECONDS_PER_SECOND = 1_000_000;

/** The resources an instance uses: from its cgroup if that counts them, otherwise from its processes. */
export function sampleResources(selector: ProcessSelector): ResourceSample {
  return (selector.cgroup === null ? undefined : sampleCgroup(selector.cgroup)) ?? sampleProcesses(selector);
}

function sampleProcesses(selector: ProcessSelector): ResourceSample {
  const members = recentInstanceProcesses(selector);
  return {
    cpuSeconds: members.reduce((sum, { cpuTicks }) => sum + cpuTicks, 0) / TICKS_PER_SECOND,
    memoryInBytes: members.reduce((sum, { pid }) => sum + residentBytes(pid), 0),
  };
}

/** Undefined if the kernel does not count memory for this cgroup. */
function sampleCgroup(cgroup: string): ResourceSample | undefined {
  try {
    const used = Number(read(cgroup, 'memory.current'));
    // Inactive page cache does not count: the kernel frees it on demand.
    const inactiveFiles = Number(/^inactive_file (\d+)$/m.exec(read(cgroup, 'memory.stat'))?.[1] ?? 0);
    const micros = Number(/^usage_usec (\d+)$/m.exec(read(cgroup, 'cpu.stat'))?.[1] ?? NaN);
    return Number.isFinite(micros)
      ? {
          cpuSeconds: micros / MICROSECONDS_PER_SECOND,
          memoryInBytes: inactiveFiles < used ? used - inactiveFiles : used,
        }
      : undefined;
  } catch {
    return undefined;
  }
}

function read(cgroup: string, name: string): string {
  return readFileSync(join(cgroup, name), 'utf8');
}
