import { performance } from 'node:perf_hooks';
import type { Handler } from './handler.ts';
import { nextTurn, TURN_MS } from './pause.ts';
import { failure, jsonOf, resultOf, streamResult, unsendable, yieldedError } from './result.ts';
import type { Result, ResultTerms } from './result.ts';
import type { Run } from './run.ts';

export interface RunnerTerms extends ResultTerms {
  aggregate: boolean;
}

/** Runs the handler on a job and sends what comes of it. */
export class Runner {
  readonly #handler: Handler;
  readonly #terms: RunnerTerms;
  /** Told of every result just before it is sent. */
  readonly #onResult: (run: Run, result: Result) => void;

  constructor(handler: Handler, terms: RunnerTerms, onResult: (run: Run, result: Result) => void) {
    this.#handler = handler;
    this.#terms = terms;
    this.#onResult = onResult;
  }

  /** Undefined where all is done at once, which keeps short jobs cheap. The promise never rejects. */
  run(run: Run): Promise<void> | undefined {
    let value: unknown;
    try {
      value = this.#handler(run.job, run.context);
      // Even the look at a value can throw.
      if (isPromise(value)) return this.#settle(run, value);
    } catch (error) {
      return this.#send(run, failure(error, this.#terms), false);
    }
    return this.#accept(run, value);
  }

  async #settle(run: Run, promise: PromiseLike<unknown>): Promise<void> {
    let value: unknown;
    try {
      value = await promise;
    } catch (error) {
      await this.#send(run, failure(error, this.#terms), false);
      return;
    }
    await this.#accept(run, value);
  }

  #accept(run: Run, value: unknown): Promise<void> | undefined {
    try {
      if (isStream(value)) return this.#stream(run, value);
    } catch (error) {
      return this.#send(run, failure(error, this.#terms), false);
    }
    return this.#send(run, resultOf(value, this.#terms), false);
  }

  async #stream(run: Run, stream: AsyncIterable<unknown> | Iterable<unknown>): Promise<void> {
    const yielded: string[] = [];
    let turnedAt = performance.now();
    let result: Result | undefined;
    try {
      for await (const value of stream) {
        if (run.stopped) return;
        if (isError(value)) {
          result = yieldedError(value instanceof Error ? value : value.error, this.#terms);
          // Before the handler cleans up, which may take its time, or fail.
          await this.#send(run, result, true);
          return;
        }
        const text = chunkText(value);
        if (this.#terms.aggregate) yielded.push(text);
        const sent = run.delivery.chunk(`{"output":${text}}`);
        if (sent !== undefined) await sent;
        else if (performance.now() - turnedAt > TURN_MS) await nextTurn();
        else continue;
        turnedAt = performance.now();
      }
      result = streamResult(`[${yielded.join(',')}]`, this.#terms);
    } catch (error) {
      if (run.over) return;
      result = failure(error, this.#terms);
    }
    await this.#send(run, result, true);
  }

  #send(run: Run, result: Result, streamed: boolean): Promise<void> | undefined {
    run.over = true;
    if (run.stopped) return undefined;
    this.#onResult(run, result);
    return run.delivery.finish(result.body, streamed);
  }
}

function chunkText(value: unknown): string {
  try {
    return jsonOf(value);
  } catch (error) {
    throw unsendable('a chunk', error);
  }
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}

/** Generators and other streams, but not lists, maps and texts: those are outputs. */
function isStream(value: unknown): value is AsyncIterable<unknown> | Iterable<unknown> {
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
