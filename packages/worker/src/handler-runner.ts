import { performance } from 'node:perf_hooks';
import type { Handler } from './handler.ts';
import { currentRun } from './exit-report.ts';
import { nextEventLoopTurn, MAX_TURN_MS } from './delay.ts';
import {
  failureResult,
  toJson,
  toJobResult,
  streamResult,
  unserializableError,
  yieldedErrorResult,
} from './job-result.ts';
import type { JobResult, ResultOptions } from './job-result.ts';
import type { JobRun } from './job-run.ts';

export interface HandlerRunnerOptions extends ResultOptions {
  aggregate: boolean;
}

/** Runs the handler on a job and sends the result. */
export class HandlerRunner {
  readonly #handler: Handler;
  readonly #options: HandlerRunnerOptions;
  /** Called with every result just before it is sent. */
  readonly #onResult: (run: JobRun, result: JobResult) => void;

  constructor(
    handler: Handler,
    terms: HandlerRunnerOptions,
    onResult: (run: JobRun, result: JobResult) => void,
  ) {
    this.#handler = handler;
    this.#options = terms;
    this.#onResult = onResult;
  }

  /**
   * Returns undefined where the job ends synchronously, which keeps short jobs cheap. The promise never
   * rejects.
   */
  run(run: JobRun): Promise<void> | undefined {
    return currentRun.run(run, () => this.#start(run));
  }

  #start(run: JobRun): Promise<void> | undefined {
    let value: unknown;
    try {
      value = this.#handler(run.job, run.context);
      // Even inspecting a value can throw.
      if (isPromise(value)) return this.#settle(run, value);
    } catch (error) {
      return this.#send(run, failureResult(error, this.#options), false);
    }
    return this.#accept(run, value);
  }

  async #settle(run: JobRun, promise: PromiseLike<unknown>): Promise<void> {
    let value: unknown;
    try {
      value = await promise;
    } catch (error) {
      await this.#send(run, failureResult(error, this.#options), false);
      return;
    }
    await this.#accept(run, value);
  }

  #accept(run: JobRun, value: unknown): Promise<void> | undefined {
    try {
      if (isChunkStream(value)) return this.#stream(run, value);
    } catch (error) {
      return this.#send(run, failureResult(error, this.#options), false);
    }
    return this.#send(run, toJobResult(value, this.#options), false);
  }

  async #stream(run: JobRun, stream: AsyncIterable<unknown> | Iterable<unknown>): Promise<void> {
    const yielded: string[] = [];
    let turnedAt = performance.now();
    let result: JobResult | undefined;
    try {
      for await (const value of stream) {
        if (run.stopped) return;
        if (isError(value)) {
          result = yieldedErrorResult(value instanceof Error ? value : value.error, this.#options);
          // Before the handler cleans up, which may be slow or fail.
          await this.#send(run, result, true);
          return;
        }
        const text = chunkText(value);
        if (this.#options.aggregate) yielded.push(text);
        const sent = run.takenJob.chunk(`{"output":${text}}`);
        if (sent !== undefined) await sent;
        else if (performance.now() - turnedAt > MAX_TURN_MS) await nextEventLoopTurn();
        else continue;
        turnedAt = performance.now();
      }
      result = streamResult(`[${yielded.join(',')}]`, this.#options);
    } catch (error) {
      if (run.handlerEnded) return;
      result = failureResult(error, this.#options);
    }
    await this.#send(run, result, true);
  }

  #send(run: JobRun, result: JobResult, streamed: boolean): Promise<void> | undefined {
    run.handlerEnded = true;
    if (run.stopped) return undefined;
    this.#onResult(run, result);
    return run.takenJob.finish(result.body, streamed);
  }
}

function chunkText(value: unknown): string {
  try {
    return toJson(value);
  } catch (error) {
    throw unserializableError('a chunk', error);
  }
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}

/** Generators and other iterables are streams. Arrays, maps and strings are outputs. */
function isChunkStream(value: unknown): value is AsyncIterable<unknown> | Iterable<unknown> {
  if (typeof value !== 'object' || value === null) return false;
  if (Symbol.asyncIterator in value) return true;
  return Symbol.iterator in value && 'next' in value && typeof value.next === 'function';
}

function isError(value: unknown): value is Error | { error: unknown } {
  if (value instanceof Error) return true;
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    'error' in value &&
    Boolean(value.error)
  );
}
