import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { type Clock, systemClock } from '../support/clock.ts';
import type { GpuAllocation } from './gpu-allocator.ts';
import type { GpuUsage } from './instance.ts';
import { cacheWithTtl } from '../support/cache-with-ttl.ts';

const run = promisify(execFile);

/** A healthy driver answers well under a second; a hung one never does. */
const TIMEOUT_MS = 3000;
/** The driver is queried at most once in this time, for all instances together. */
const CACHE_TTL_MS = 2000;
const QUERY = ['--query-gpu=index,utilization.gpu,memory.used,memory.total', '--format=csv,noheader,nounits'];

/** The usage of this machine's GPUs, by the driver's index. */
export type GpuUsageByIndex = ReadonlyMap<number, GpuUsage>;

/** Queries the driver and caches the answer. Empty if the driver does not answer. */
export function gpuUsageReader(
  command = 'nvidia-smi',
  clock: Clock = systemClock,
): () => Promise<GpuUsageByIndex> {
  return cacheWithTtl(
    async () => {
      try {
        const { stdout } = await run(command, QUERY, {
          signal: AbortSignal.timeout(TIMEOUT_MS),
          killSignal: 'SIGKILL',
        });
        return parseGpuUsage(stdout);
      } catch {
        // The problem is reported elsewhere, when the machine is read.
        return new Map();
      }
    },
    CACHE_TTL_MS,
    clock,
  );
}

/** One line per GPU. Values that the driver does not give (`[N/A]`) are 0. */
export function parseGpuUsage(text: string): Map<number, GpuUsage> {
  return new Map(
    text.split('\n').flatMap((line) => {
      const [index = NaN, util = 0, used = 0, total = 0] = line
        .split(',')
        .map((field) => Number.parseFloat(field));
      return Number.isInteger(index)
        ? [
            [
              index,
              { util: percent(util), memoryUtil: total > 0 ? percent((100 * used) / total) : 0 },
            ] as const,
          ]
        : [];
    }),
  );
}

/** The usage of an instance's GPUs, in their order. Virtual GPUs are at 0. */
export async function usageOfAllocation(
  gpus: GpuAllocation | null,
  virtual: boolean,
  read: () => Promise<GpuUsageByIndex>,
): Promise<GpuUsage[]> {
  if (gpus === null) return [];
  const found: GpuUsageByIndex = virtual ? new Map() : await read();
  return gpus.indexes.map((index) => found.get(index) ?? { util: 0, memoryUtil: 0 });
}

function percent(value: number): number {
  return Number.isFinite(value) ? Math.max(0, Math.min(100, Math.round(value))) : 0;
}
