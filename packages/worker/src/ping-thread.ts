import { performance } from 'node:perf_hooks';
import { Worker } from 'node:worker_threads';
import { errorMessage } from './error-report.ts';
import type { WorkerLog } from './worker-log.ts';

/** The message to the ping thread. */
export interface PingThreadMessage {
  /** Which worker of this process it concerns. */
  worker: number;
  apiKey: string;
  pingMs: number;
  /** The ping URL for the jobs that the worker holds now. Undefined: the worker has stopped. */
  pingUrl: string | undefined;
  /** Counts the changes to the held jobs, in memory that both threads share. */
  changes: Int32Array;
  /** The count of changes that the ping includes. */
  changesInPingUrl: number;
}

export interface PingThreadOptions {
  apiKey: string;
  pingMs: number;
  log: WorkerLog;
  pingUrl(): string | undefined;
}

/** Changes are sent to the ping thread at most this often. */
const UPDATE_INTERVAL_MS = 50;

/** One thread serves all workers of a process: they are blocked together. */
let thread: Worker | undefined;
let workers = 0;
let lastWorkerNumber = 0;
/** Incremented while the event loop of the workers runs. */
const mainThreadTicks = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));

/**
 * A handler that computes, or waits for a child process, without ever yielding keeps the worker from sending
 * pings, and a silent worker is taken for dead. A second thread detects that and then sends the pings. It
 * starts with the worker, while that still runs its checks or connects: it takes about 40 ms of CPU time, and
 * the first job may be one that never awaits.
 */
export class PingThread {
  readonly #options: PingThreadOptions;
  readonly #worker = (lastWorkerNumber += 1);
  readonly #timer: NodeJS.Timeout;
  #summary: NodeJS.Timeout | undefined;
  #pingedAt = -Infinity;
  readonly #changes = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));

  constructor(options: PingThreadOptions) {
    this.#options = options;
    workers += 1;
    thread ??= startThread(options.log);
    this.#timer = setInterval(() => Atomics.add(mainThreadTicks, 0, 1), options.pingMs / 4).unref();
  }

  /** From now on this thread pings when the worker is silent. The first job is still reported immediately. */
  start(): void {
    this.#post(this.#options.pingUrl());
    this.#pingedAt = -Infinity;
  }

  /** The set of held jobs has changed. */
  jobsChanged(): void {
    Atomics.add(this.#changes, 0, 1);
    // Immediately where possible: the job that has just arrived may block this thread later. A list that does
    // not include it is sent as partial.
    if (performance.now() - this.#pingedAt >= UPDATE_INTERVAL_MS) this.#post(this.#options.pingUrl());
    else this.#summary ??= setTimeout(() => this.#post(this.#options.pingUrl()), UPDATE_INTERVAL_MS).unref();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#post(undefined);
    workers -= 1;
    if (workers > 0) return;
    const last = thread;
    thread = undefined;
    await last?.terminate();
  }

  #post(address: string | undefined): void {
    clearTimeout(this.#summary);
    this.#summary = undefined;
    this.#pingedAt = performance.now();
    const message: PingThreadMessage = {
      worker: this.#worker,
      apiKey: this.#options.apiKey,
      pingMs: this.#options.pingMs,
      pingUrl: address,
      changes: this.#changes,
      changesInPingUrl: Atomics.load(this.#changes, 0),
    };
    thread?.postMessage(message);
  }
}

function startThread(log: WorkerLog): Worker {
  const started = new Worker(new URL('./ping-thread-main.js', import.meta.url), {
    workerData: mainThreadTicks,
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: 32 },
  });
  started.on('error', (error) =>
    log.warn(`No pings are sent while a handler keeps the whole worker busy: ${errorMessage(error)}`),
  );
  started.unref();
  return started;
}
