import { Worker } from 'node:worker_threads';
import { messageOf } from './failure.ts';
import type { Log } from './log.ts';

/** What the other thread is told. */
export interface PulseMessage {
  /** Which worker of this process it is about. */
  worker: number;
  apiKey: string;
  pingMs: number;
  /** The ping for what the worker has in hand now. Undefined: the worker has stopped. */
  address: string | undefined;
}

export interface PulseParts {
  apiKey: string;
  pingMs: number;
  log: Log;
  address(): string | undefined;
  /** When the other thread starts. */
  afterMs: number;
}

/** The list of jobs that the other thread would send is at most this old. */
const FRESH_MS = 50;

/** One thread serves all workers of a process: they stand still together. */
let thread: Worker | undefined;
let workers = 0;
let numbers = 0;
/** Counts up as long as the workers' own thread takes its turns. */
const beats = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));

/**
 * A handler that computes, or waits for a child process, without ever letting go of the thread
 * keeps the worker from saying anything, and a silent worker is taken for dead. A second thread
 * watches for that, and then sends the pings.
 */
export class Pulse {
  readonly #parts: PulseParts;
  readonly #worker = (numbers += 1);
  readonly #beating: NodeJS.Timeout;
  #starting: NodeJS.Timeout | undefined;
  #telling: NodeJS.Timeout | undefined;

  constructor(parts: PulseParts) {
    this.#parts = parts;
    workers += 1;
    this.#beating = setInterval(() => Atomics.add(beats, 0, 1), parts.pingMs / 4).unref();
    if (parts.afterMs === 0) this.#start();
    else this.#starting = setTimeout(() => this.#start(), parts.afterMs).unref();
  }

  /** The worker has other jobs in hand than before. */
  changed(): void {
    this.#telling ??= setTimeout(() => {
      this.#telling = undefined;
      this.#tell(this.#parts.address());
    }, FRESH_MS).unref();
  }

  async stop(): Promise<void> {
    clearInterval(this.#beating);
    clearTimeout(this.#starting);
    clearTimeout(this.#telling);
    this.#tell(undefined);
    workers -= 1;
    if (workers > 0) return;
    const last = thread;
    thread = undefined;
    await last?.terminate();
  }

  #start(): void {
    thread ??= startThread(this.#parts.log);
    this.#tell(this.#parts.address());
  }

  #tell(address: string | undefined): void {
    const message: PulseMessage = { worker: this.#worker, apiKey: this.#parts.apiKey, pingMs: this.#parts.pingMs, address };
    thread?.postMessage(message);
  }
}

function startThread(log: Log): Worker {
  const started = new Worker(new URL('./pulse-thread.js', import.meta.url), { workerData: beats, execArgv: [], resourceLimits: { maxOldGenerationSizeMb: 32 } });
  started.on('error', (error) => log.warn(`No pings are sent while a handler keeps the whole worker busy: ${messageOf(error)}`));
  started.unref();
  return started;
}
