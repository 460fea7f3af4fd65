import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { workerEnvironment } from '../python-process.ts';
import type { PythonSdk } from '../python-sdks.ts';
import type { HistoryEvent } from './job-history.ts';
import { monotonicMs } from './job-history.ts';

const SCRIPT = fileURLToPath(new URL('killable-worker-main.ts', import.meta.url));
const PYTHON_SCRIPT = fileURLToPath(new URL('killable_python_worker.py', import.meta.url));
const PING_EVERY_MS = 300;

/** None outlives the test, not even one that is frozen. */
const processes = new Set<ChildProcess>();
process.on('exit', () => processes.forEach((child) => child.kill('SIGKILL')));

export interface KillableWorkerOptions {
  protocol: 'public' | 'channel';
  server: string;
  endpointId: string;
  key: string;
  concurrency: number;
  /** For its notes. */
  folder: string;
  history: HistoryEvent[];
  /** A worker with this SDK, instead of the small one in TypeScript. */
  python?: PythonSdk;
}

/** A worker in a process, and the processes that come after it when it is killed. */
export class KillableWorker {
  readonly #options: KillableWorkerOptions;
  readonly #name: string;
  #process: ChildProcess | undefined;
  #runs = 0;
  #workerId = '';
  #suspended = false;

  constructor(name: string, options: KillableWorkerOptions) {
    this.#name = name;
    this.#options = options;
    this.start(false);
  }

  get frozen(): boolean {
    return this.#suspended;
  }

  /** Under its old name, as a container that is restarted, or under a new one. */
  start(sameName: boolean): void {
    const { protocol, server, endpointId, key, concurrency, folder } = this.#options;
    this.#runs += 1;
    if (!sameName) this.#workerId = `${this.#name}-${this.#runs}`;
    if (this.#options.python !== undefined) return this.#startPython(this.#options.python);
    const args = [
      SCRIPT,
      protocol,
      server,
      endpointId,
      this.#workerId,
      `${this.#name}:${this.#runs}`,
      key,
      concurrency,
      PING_EVERY_MS,
      join(folder, `${this.#name}.jsonl`),
    ].map(String);
    this.#process = spawn(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    processes.add(this.#process);
  }

  #startPython({ python, env }: PythonSdk): void {
    const { protocol, server: url, endpointId, key, concurrency, folder } = this.#options;
    const args = [
      PYTHON_SCRIPT,
      `${this.#name}:${this.#runs}`,
      String(concurrency),
      join(folder, `${this.#name}.jsonl`),
    ];
    // It ends with its standard input, at the latest when this process does.
    this.#process = spawn(python, args, {
      cwd: mkdtempSync(join(folder, `${this.#name}-`)),
      stdio: ['pipe', 'ignore', 'ignore'],
      env: {
        PATH: process.env['PATH'],
        HOME: folder,
        PYTHONDONTWRITEBYTECODE: '1',
        ...workerEnvironment({ url, endpointId, workerId: this.#workerId, key }),
        RUNPOD_PING_INTERVAL: String(PING_EVERY_MS),
        RUNPOD_SKIP_GPU_CHECK: 'true',
        BERTH_WORKER_CHANNEL: protocol === 'channel' ? 'fast' : 'public',
        ...env,
      },
    });
    this.#process.stdin?.on('error', () => undefined);
    processes.add(this.#process);
  }

  async kill(): Promise<void> {
    const process = this.#process;
    this.#note('killed');
    this.#suspended = false;
    if (process === undefined || process.exitCode !== null || process.signalCode !== null) return;
    const ended = once(process, 'exit');
    process.kill('SIGKILL');
    await ended;
  }

  suspend(): void {
    this.#note('frozen');
    this.#suspended = true;
    this.#process?.kill('SIGSTOP');
  }

  resume(): void {
    this.#suspended = false;
    this.#process?.kill('SIGCONT');
  }

  /** What all its runs wrote down. The last line of one that was killed may be cut off. */
  recordedEvents(): HistoryEvent[] {
    const file = join(this.#options.folder, `${this.#name}.jsonl`);
    if (!existsSync(file)) return [];
    return readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('{') && line.endsWith('}'))
      .map((line) => JSON.parse(line) as HistoryEvent);
  }

  #note(what: string): void {
    this.#options.history.push({ kind: 'disturbance', what: `${this.#workerId} ${what}`, at: monotonicMs() });
  }
}
