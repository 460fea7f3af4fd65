import { performance } from 'node:perf_hooks';
import type { Context, Job } from './handler.ts';
import type { TakenJob } from './job-source.ts';
import { toJson, unserializableError } from './job-result.ts';

/** One run of a job in this worker. */
export class JobRun {
  readonly takenJob: TakenJob;
  readonly context: Context;
  #controller: AbortController | undefined;
  #aborted: DOMException | undefined;
  readonly receivedAt = performance.now();
  startedAt = 0;
  /** It cannot be returned, so it waits here until it starts. */
  cannotReturn = false;
  /** The handler has ended: later progress and chunks are ignored. */
  handlerEnded = false;

  constructor(delivery: TakenJob) {
    this.takenJob = delivery;
    this.context = contextOf(this);
  }

  get job(): Job {
    return this.takenJob.job;
  }

  get stopped(): boolean {
    return this.#aborted !== undefined;
  }

  /** Created on first use: most handlers never use it. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#aborted !== undefined) this.#controller.abort(this.#aborted);
    return this.#controller.signal;
  }

  abort(reason: string): void {
    if (this.#aborted !== undefined) return;
    this.#aborted = new DOMException(reason, 'AbortError');
    this.takenJob.abandon();
    this.#controller?.abort(this.#aborted);
  }
}

/** The members are own properties, so that a copy has them all. */
function contextOf(run: JobRun): Context {
  return {
    get signal() {
      return run.signal;
    },
    progress: (value) => {
      if (run.handlerEnded || run.stopped) return;
      let text: string;
      try {
        text = toJson(value);
      } catch (error) {
        throw unserializableError('progress', error);
      }
      run.takenJob.progress(text);
    },
  };
}
