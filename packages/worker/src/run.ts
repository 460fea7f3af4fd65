import { performance } from 'node:perf_hooks';
import type { Context, Job } from './handler.ts';
import type { Delivery } from './job-source.ts';
import { jsonOf, unsendable } from './result.ts';

/** One run of a job in this worker. */
export class Run {
  readonly delivery: Delivery;
  readonly context: Context;
  #controller: AbortController | undefined;
  #stopped: DOMException | undefined;
  readonly deliveredAt = performance.now();
  begunAt = 0;
  /** It waits here for as long as it takes: there was no way back. */
  stays = false;
  /** The handler is through: what it still says about the job no longer counts. */
  over = false;

  constructor(delivery: Delivery) {
    this.delivery = delivery;
    this.context = contextOf(this);
  }

  get job(): Job {
    return this.delivery.job;
  }

  get stopped(): boolean {
    return this.#stopped !== undefined;
  }

  /** Made when it is asked for: most handlers never do. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#stopped !== undefined) this.#controller.abort(this.#stopped);
    return this.#controller.signal;
  }

  stop(reason: string): void {
    if (this.#stopped !== undefined) return;
    this.#stopped = new DOMException(reason, 'AbortError');
    this.delivery.drop();
    this.#controller?.abort(this.#stopped);
  }
}

/** Its members are its own, so that a copy of it has them all. */
function contextOf(run: Run): Context {
  return {
    get signal() {
      return run.signal;
    },
    progress: (value) => {
      if (run.over || run.stopped) return;
      let text: string;
      try {
        text = jsonOf(value);
      } catch (error) {
        throw unsendable('progress', error);
      }
      run.delivery.progress(text);
    },
  };
}
