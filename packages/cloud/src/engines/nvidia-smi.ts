import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** On a healthy machine it takes well under a second; a hung driver would keep it for ever. */
const TIMEOUT_MS = 3000;
const QUERY = ['--query-gpu=name,memory.total,driver_version', '--format=csv,noheader,nounits'];

export interface NvidiaGpu {
  name: string;
  /** 0 where the GPU shares the machine's memory and the driver gives no number. */
  memoryInMib: number;
  driverVersion: string;
}

/** What was found. A machine without the command simply has no such GPU. */
export interface NvidiaSmiResult {
  gpus: NvidiaGpu[];
  cudaVersion: string | null;
  /** Why nothing could be found although the command is there. */
  problem: string | null;
  /** False when the command did not end in time, so that nothing is known. */
  answered: boolean;
}

export async function findNvidiaGpus(
  command = 'nvidia-smi',
  timeoutMs = TIMEOUT_MS,
): Promise<NvidiaSmiResult> {
  // A signal and not execFile's own timeout, which waits for the process to be gone: one that hangs in the driver cannot be killed.
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
    // It explains itself on standard output, such as "No devices were found".
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
