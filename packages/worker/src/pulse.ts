import { Worker } from 'node:worker_threads';
import type { Log } from './log.ts';

export interface PulseData {
  apiKey: string;
  pingMs: number;
  /** Counts up while the worker's own thread takes its turns. */
  beats: Int32Array;
}

export interface PulseParts {
  apiKey: string;
  pingMs: number;
  log: Log;
  /** The ping for what the worker has in hand now. */
  address(): string | undefined;
}

/** The list of jobs that the other thread would send is at most this old. */
const FRESH_MS = 50;

/**
 * A handler that computes, or waits for a child process, without ever letting go of the thread
 * keeps the worker from saying anything, and a silent worker is taken for dead. A second thread
 * watches for that, and then sends the pings.
 */
export class Pulse {
  readonly #parts: PulseParts;
  readonly #beats = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  readonly #thread: Worker;
  readonly #beating: NodeJS.Timeout;
  #telling: NodeJS.Timeout | undefined;

  constructor(parts: PulseParts) {
    this.#parts = parts;
    const { apiKey, pingMs, log } = parts;
    const data: PulseData = { apiKey, pingMs, beats: this.#beats };
    this.#thread = new Worker(new URL('./pulse-thread.js', import.meta.url), { workerData: data, execArgv: [], resourceLimits: { maxOldGenerationSizeMb: 32 } });
    this.#thread.on('error', (error) => log.warn(`No pings are sent while a handler keeps the whole worker busy: ${error.message}`));
    this.#thread.unref();
    this.#beating = setInterval(() => Atomics.add(this.#beats, 0, 1), pingMs / 4).unref();
    this.#tell();
  }

  /** The worker has other jobs in hand than before. */
  changed(): void {
    this.#telling ??= setTimeout(() => this.#tell(), FRESH_MS).unref();
  }

  async stop(): Promise<void> {
    clearInterval(this.#beating);
    clearTimeout(this.#telling);
    await this.#thread.terminate();
  }

  #tell(): void {
    this.#telling = undefined;
    this.#thread.postMessage(this.#parts.address());
  }
}
