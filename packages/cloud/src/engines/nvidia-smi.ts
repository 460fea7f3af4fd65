import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** A healthy driver answers well under a second; a hung one never does. */
const TIMEOUT_MS = 3000;
const QUERY = ['--query-gpu=name,memory.total,driver_version', '--format=csv,noheader,nounits'];

export interface NvidiaGpu {
  name: string;
  /** 0 if the GPU shares the machine's memory and the driver gives no number. */
  memoryInMib: number;
  driverVersion: string;
}

/** The GPUs that were found. A machine without nvidia-smi has none, which is not a problem. */
export interface NvidiaSmiResult {
  gpus: NvidiaGpu[];
  cudaVersion: string | null;
  /** Why nothing was found although the command exists. */
  problem: string | null;
  /** False when the command timed out, so nothing is known. */
  answered: boolean;
}

export async function findNvidiaGpus(
  command = 'nvidia-smi',
  timeoutMs = TIMEOUT_MS,
): Promise<NvidiaSmiResult> {
  // An abort signal instead of execFile's timeout, which waits for the process to exit: a process that hangs
  // in the driver cannot be killed.
  const options = { signal: AbortSignal.timeout(timeoutMs), killSignal: 'SIGKILL' as const };
  try {
    const [list, header] = await Promise.all([run(command, QUERY, options), run(command, options)]);
    return {
      gpus: parseGpuList(list.stdout),
      cudaVersion: parseCudaVersion(header.stdout),
      problem: null,
      answered: true,
    };
  } catch (error) {
    const failure = error as NodeJS.ErrnoException & { stdout?: string };
    const nothing = { gpus: [], cudaVersion: null };
    if (failure.code === 'ENOENT') return { ...nothing, problem: null, answered: true };
    if (failure.name === 'AbortError')
      return { ...nothing, problem: `${command} did not answer within ${timeoutMs} ms`, answered: false };
    // It prints the reason to standard output, such as "No devices were found".
    return {
      ...nothing,
      problem: firstLine(failure.stdout ?? '') || firstLine(failure.message),
      answered: true,
    };
  }
}

/** One line per GPU: name, memory in MiB, driver version. */
export function parseGpuList(text: string): NvidiaGpu[] {
  return text.split('\n').flatMap((line) => {
    const [name, memory, driverVersion] = line.split(',').map((field) => field.trim());
    if (!name || memory === undefined || driverVersion === undefined) return [];
    return [{ name, memoryInMib: /^\d+$/.test(memory) ? Number(memory) : 0, driverVersion }];
  });
}

/** The header of the plain command names the newest CUDA version that the driver supports. */
export function parseCudaVersion(text: string): string | null {
  return /\bCUDA Version\s*:\s*(\d+\.\d+)/.exec(text)?.[1] ?? null;
}

function firstLine(text: string): string {
  return text.trim().split('\n', 1)[0] ?? '';
}
