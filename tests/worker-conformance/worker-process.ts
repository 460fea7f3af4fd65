import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { WorkerTarget } from '../../packages/testing/src/protocol-workers.ts';
import { workerEnvironment } from '../../packages/testing/src/python-process.ts';
import { acceleratedPythonSdk, berthPythonSdk } from '../../packages/testing/src/python-sdks.ts';
import type { WorkerSettings } from './conformance-input.ts';

/** One way to write a worker. */
export interface WorkerSdk {
  name: string;
  command: string[];
  env: Record<string, string>;
  /** How it can be told to take its jobs. */
  channels: readonly ('fast' | 'public')[];
}

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const PING_MS = 300;
const KEPT_OUTPUT = 100_000;

export const TYPESCRIPT: WorkerSdk = {
  name: 'the TypeScript SDK',
  command: [process.execPath, here('handler.ts')],
  env: {},
  channels: ['fast', 'public'],
};

/** Or in one line why it cannot run. */
export function pythonSdk(): WorkerSdk | string {
  const sdk = berthPythonSdk();
  if (typeof sdk === 'string') return sdk;
  return {
    name: 'the Python SDK',
    command: [sdk.python, here('handler.py')],
    env: sdk.env,
    channels: ['fast', 'public'],
  };
}

/** Or in one line why it cannot run. */
export function acceleratedSdk(): WorkerSdk | string {
  const sdk = acceleratedPythonSdk();
  if (typeof sdk === 'string') return sdk;
  return {
    name: 'the public SDK, accelerated',
    command: [sdk.python, here('handler.py')],
    env: sdk.env,
    channels: ['fast'],
  };
}

/** A worker that runs beside the test. It ends when its standard input does, at the latest with the test. */
export class WorkerProcess {
  readonly ended: Promise<number | null>;
  readonly #child;
  #output = '';

  constructor(sdk: WorkerSdk, target: WorkerTarget, settings: WorkerSettings, folder: string) {
    const [program = '', ...args] = sdk.command;
    this.#child = spawn(program, args, {
      cwd: folder,
      // In a group of its own: the Python SDKs ping from a second process.
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe'],
      env: {
        PATH: process.env['PATH'],
        HOME: folder,
        NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
        ...workerEnvironment(target),
        RUNPOD_PING_INTERVAL: String(PING_MS),
        RUNPOD_SKIP_GPU_CHECK: 'true',
        PYTHONDONTWRITEBYTECODE: '1',
        BERTH_WORKER_CHANNEL: settings.channel,
        CONFORMANCE: JSON.stringify(settings),
        ...sdk.env,
      },
    });
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.#output = (this.#output + text).slice(-KEPT_OUTPUT);
      });
    this.#child.stdin.on('error', () => undefined);
    this.ended = once(this.#child, 'exit').then(([code]) => code as number | null);
  }

  /** The end of what it has printed. */
  get output(): string {
    return this.#output;
  }

  terminate(): void {
    this.#child.kill('SIGTERM');
  }

  async kill(): Promise<void> {
    try {
      process.kill(-(this.#child.pid ?? 0), 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
    await this.ended;
  }
}
