import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { type Clock, systemClock } from '../support/clock.ts';
import type { GpuAllocation } from './gpu-allocator.ts';
import type { GpuUsage } from './instance.ts';
import { cacheWithTtl } from '../support/cache-with-ttl.ts';

const run = promisify(execFile);

/** On a healthy machine it takes well under a second; a hung driver would keep it for ever. */
const TIMEOUT_MS = 3000;
/** However many instances are asked about, the driver is asked once in this time. */
const CACHE_TTL_MS = 2000;
const QUERY = ['--query-gpu=index,utilization.gpu,memory.used,memory.total', '--format=csv,noheader,nounits'];

/** How busy the GPUs of this machine are, by the number under which the driver knows them. */
export type GpuUsageByIndex = ReadonlyMap<number, GpuUsage>;

/** Asks the driver, and shares its answer for a moment. Where it does not answer, nothing is known. */
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
        // A machine whose driver is silent has shown that elsewhere.
        return new Map();
      }
    },
    CACHE_TTL_MS,
    clock,
  );
}

/** One line for each GPU. What the driver does not tell (`[N/A]`) is 0. */
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

/** Of the GPUs that an instance holds, in their order. Virtual ones do nothing. */
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
