import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { WorkerTarget } from './protocol-workers.ts';

/** A Python, such as that of a virtual environment. */
export interface PythonInterpreter {
  path: string;
}

/** A program in Python that runs beside the test. */
export interface PythonProcess {
  process: ChildProcess;
  /** All that it has printed, errors included. */
  output(): string;
  /** Resolves with its exit code once it has ended; null where a signal ended it. */
  ended: Promise<number | null>;
  /** Sends SIGTERM. */
  terminate(): void;
  /** Ends it for certain. */
  kill(): Promise<void>;
}

/** Runs a text as a program, with nothing around it but these variables. */
export function startPython(
  { path }: PythonInterpreter,
  source: string,
  env: Record<string, string> = {},
): PythonProcess {
  const home = mkdtempSync(join(tmpdir(), 'berth-python-'));
  const file = join(home, 'program.py');
  writeFileSync(file, source);
  // In a group of its own: the SDK pings from a second process, which outlives the first.
  const child = spawn(path, ['-u', file], {
    cwd: home,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'], HOME: home, ...env },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  const ended = once(child, 'exit').then(([code]) => {
    rmSync(home, { recursive: true, force: true });
    return code as number | null;
  });
  return {
    process: child,
    output: () => output,
    ended,
    terminate: () => void child.kill('SIGTERM'),
    kill: async () => {
      killProcessGroup(child.pid);
      await ended;
    },
  };
}

function killProcessGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    // It has ended already, with all that belongs to it.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** What a platform puts into the environment of a worker of the public SDK. */
export function workerEnvironment({ url, endpointId, workerId, key }: WorkerTarget): Record<string, string> {
  const base = `${url}/v2/${endpointId}`;
  return {
    RUNPOD_ENDPOINT_ID: endpointId,
    RUNPOD_POD_ID: workerId,
    RUNPOD_POD_HOSTNAME: 'here',
    RUNPOD_AI_API_KEY: key,
    RUNPOD_WEBHOOK_GET_JOB: `${base}/job-take/$ID?gpu=none`,
    RUNPOD_WEBHOOK_POST_OUTPUT: `${base}/job-done/$RUNPOD_POD_ID/$ID?gpu=none`,
    RUNPOD_WEBHOOK_POST_STREAM: `${base}/job-stream/$RUNPOD_POD_ID/$ID?gpu=none`,
    RUNPOD_WEBHOOK_PING: `${base}/ping/$RUNPOD_POD_ID?gpu=none`,
    RUNPOD_PING_INTERVAL: '2000',
    RUNPOD_SKIP_AUTO_SYSTEM_CHECKS: 'true',
  };
}
