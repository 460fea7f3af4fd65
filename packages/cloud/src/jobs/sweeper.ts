import type { Log } from '../support/log.ts';
import type { Caretaker } from './caretaker.ts';

const EVERY_MS = 500;

/** Lets time do its work: once or twice a second it looks at what is due, and goes on while there is more. */
export class Sweeper {
  readonly #caretaker: Caretaker;
  readonly #log: Log;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(caretaker: Caretaker, log: Log) {
    this.#caretaker = caretaker;
    this.#log = log;
  }

  start(): void {
    this.#timer = setTimeout(() => {
      this.#running = this.#round().finally(() => {
        if (!this.#closed) this.start();
      });
    }, EVERY_MS);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#running;
  }

  async #round(): Promise<void> {
    try {
      while (!this.#closed && (await this.#caretaker.sweep())) await new Promise((resolve) => setImmediate(resolve));
      await this.#caretaker.sweepLost();
    } catch (error) {
      this.#log.warn({ err: error }, 'jobs that are due could not be looked after; trying again');
    }
  }
}
