import { execFile, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { WorkerPlace } from './worker.ts';

/** The public SDK, as images that people already use have it. */
const PACKAGE = 'runpod~=1.12.0';
const FOLDER = fileURLToPath(new URL('../../node_modules/.cache/berth-python', import.meta.url));
const INSTALL_LIMIT_MS = 600_000;

const run = promisify(execFile);

/** A Python that has the public SDK, or why there is none. */
export type Python = { path: string } | { missing: string };

/** Made once and kept beside the other dependencies. */
export async function preparePython(): Promise<Python> {
  const path = join(FOLDER, 'bin', 'python');
  const ready = join(FOLDER, `has ${PACKAGE}`);
  if (existsSync(ready)) return { path };
  try {
    await run('python3', ['-m', 'venv', '--clear', FOLDER], { timeout: INSTALL_LIMIT_MS });
    await run(path, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', PACKAGE], { timeout: INSTALL_LIMIT_MS });
    writeFileSync(ready, '');
    return { path };
  } catch (error) {
    if (process.env['BERTH_REQUIRE_PYTHON'] === '1') throw error;
    const { stderr = '', message } = error as Error & { stderr?: string };
    const [line = message] = stderr.split('\n').filter((text) => text.trim() !== '').slice(-1);
    return { missing: `no Python with ${PACKAGE}: ${line.slice(0, 200)}` };
  }
}

/** A program in Python that runs beside the test. */
export interface PythonProgram {
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
export function startPython({ path }: { path: string }, source: string, env: Record<string, string> = {}): PythonProgram {
  const home = mkdtempSync(join(tmpdir(), 'berth-python-'));
  const file = join(home, 'program.py');
  writeFileSync(file, source);
  // In a group of its own: the SDK pings from a second process, which outlives the first.
  const child = spawn(path, ['-u', file], { cwd: home, detached: true, stdio: ['ignore', 'pipe', 'pipe'], env: { PATH: process.env['PATH'], HOME: home, ...env } });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => (output += text));
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
      endGroup(child.pid);
      await ended;
    },
  };
}

function endGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    // It has ended already, with all that belongs to it.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** What a platform puts into the environment of a worker of the public SDK. */
export function workerEnvironment({ url, endpointId, workerId, key }: WorkerPlace): Record<string, string> {
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
