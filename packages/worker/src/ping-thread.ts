import { performance } from 'node:perf_hooks';
import { Worker } from 'node:worker_threads';
import { errorMessage } from './error-report.ts';
import type { WorkerLog } from './worker-log.ts';

/** What the other thread is told. */
export interface PingThreadMessage {
  /** Which worker of this process it is about. */
  worker: number;
  apiKey: string;
  pingMs: number;
  /** The ping for what the worker has in hand now. Undefined: the worker has stopped. */
  pingUrl: string | undefined;
  /** Counts the changes in what the worker has in hand, in memory that both threads see. */
  changes: Int32Array;
  /** How many of them the ping knows of. */
  changesInPingUrl: number;
}

export interface PingThreadOptions {
  apiKey: string;
  pingMs: number;
  log: WorkerLog;
  pingUrl(): string | undefined;
}

/** The other thread is told of changes at most this often. */
const UPDATE_INTERVAL_MS = 50;

/** One thread serves all workers of a process: they stand still together. */
let thread: Worker | undefined;
let workers = 0;
let lastWorkerNumber = 0;
/** Counts up as long as the workers' own thread takes its turns. */
const mainThreadTicks = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));

/**
 * A handler that computes, or waits for a child process, without ever letting go of the thread
 * keeps the worker from saying anything, and a silent worker is taken for dead. A second thread
 * watches for that, and then sends the pings. It starts with the worker, while that still looks
 * at itself or connects: it takes some 40 ms of processor time, and the first job may be one that never waits.
 */
export class PingThread {
  readonly #options: PingThreadOptions;
  readonly #worker = (lastWorkerNumber += 1);
  readonly #timer: NodeJS.Timeout;
  #summary: NodeJS.Timeout | undefined;
  #pingedAt = -Infinity;
  readonly #changes = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));

  constructor(parts: PingThreadOptions) {
    this.#options = parts;
    workers += 1;
    thread ??= startThread(parts.log);
    this.#timer = setInterval(() => Atomics.add(mainThreadTicks, 0, 1), parts.pingMs / 4).unref();
  }

  /** The worker is missed from now on if it says nothing. Its first job is told at once all the same. */
  start(): void {
    this.#tell(this.#options.pingUrl());
    this.#pingedAt = -Infinity;
  }

  /** The worker has other jobs in hand than before. */
  jobsChanged(): void {
    Atomics.add(this.#changes, 0, 1);
    // At once where that is possible: the job that has just come may keep this thread from telling it later. A list
    // that does not know of it is sent as a part.
    if (performance.now() - this.#pingedAt >= UPDATE_INTERVAL_MS) this.#tell(this.#options.pingUrl());
    else this.#summary ??= setTimeout(() => this.#tell(this.#options.pingUrl()), UPDATE_INTERVAL_MS).unref();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#tell(undefined);
    workers -= 1;
    if (workers > 0) return;
    const last = thread;
    thread = undefined;
    await last?.terminate();
  }

  #tell(address: string | undefined): void {
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
