import type { Clock } from '../../../support/clock.ts';
import { BerthError } from '../../../support/errors.ts';

/** A build that takes longer has failed. */
const TIMEOUT_MS = 60 * 60_000;
/** Builds at the same time; others wait. */
const CONCURRENCY = 2;
/** A build that failed is tried again after this, and then after twice as long each time. */
const MIN_RETRY_MS = 30_000;
const MAX_RETRY_MS = 10 * 60_000;
/** Lines that an instance gets which joins a build late. */
const KEPT_LINES = 50;

export interface BuildWaiter {
  onLine: (line: string) => void;
  signal: AbortSignal;
}

interface RunningBuild<T> {
  done: Promise<T>;
  lines: string[];
  listeners: Set<(line: string) => void>;
}

interface Failure {
  error: BerthError;
  count: number;
  retryAt: number;
}

/**
 * The builds in progress, by name: a caller that needs a running one joins it. A build goes on if nobody waits for
 * it any more. Failures are remembered, so that an endpoint whose workers start again and again does not
 * build each time.
 */
export class EnvironmentBuilds<T> {
  readonly #clock: Clock;
  readonly #running = new Map<string, RunningBuild<T>>();
  readonly #failures = new Map<string, Failure>();
  readonly #waiting: (() => void)[] = [];
  readonly #closed = new AbortController();
  #active = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async join(
    name: string,
    build: (onLine: (line: string) => void, signal: AbortSignal) => Promise<T>,
    { onLine, signal }: BuildWaiter,
  ): Promise<T> {
    signal.throwIfAborted();
    const failure = this.#failures.get(name);
    if (failure !== undefined && this.#clock.now() < failure.retryAt) throw failure.error;
    const running = this.#running.get(name) ?? this.#start(name, build);
    for (const line of running.lines) onLine(line);
    running.listeners.add(onLine);
    const cancelled = Promise.withResolvers<never>();
    const cancel = (): void => cancelled.reject(signal.reason as Error);
    signal.addEventListener('abort', cancel);
    try {
      return await Promise.race([running.done, cancelled.promise]);
    } finally {
      signal.removeEventListener('abort', cancel);
      running.listeners.delete(onLine);
    }
  }

  /** The next caller does not wait for the next try. */
  forgetFailure(name: string): void {
    this.#failures.delete(name);
  }

  /** Resolves when no build is left. */
  async close(reason: BerthError): Promise<void> {
    this.#closed.abort(reason);
    for (const proceed of this.#waiting.splice(0)) proceed();
    await Promise.allSettled([...this.#running.values()].map(({ done }) => done));
  }

  #start(
    name: string,
    build: (onLine: (line: string) => void, signal: AbortSignal) => Promise<T>,
  ): RunningBuild<T> {
    const running: RunningBuild<T> = { done: Promise.resolve() as never, lines: [], listeners: new Set() };
    const onLine = (line: string): void => {
      running.lines.push(line);
      if (running.lines.length > KEPT_LINES) running.lines.shift();
      for (const listener of running.listeners) listener(line);
    };
    this.#running.set(name, running);
    running.done = this.#run(name, build, onLine).finally(() => this.#running.delete(name));
    // Everyone who waited may have left.
    running.done.catch(() => undefined);
    return running;
  }

  async #run(
    name: string,
    build: (onLine: (line: string) => void, signal: AbortSignal) => Promise<T>,
    onLine: (line: string) => void,
  ): Promise<T> {
    await this.#waitForTurn(onLine);
    const signal = AbortSignal.any([this.#closed.signal, AbortSignal.timeout(TIMEOUT_MS)]);
    try {
      signal.throwIfAborted();
      const built = await build(onLine, signal);
      this.#failures.delete(name);
      return built;
    } catch (error) {
      if (this.#closed.signal.aborted) throw this.#closed.signal.reason as Error;
      throw this.#recordFailure(name, signal.aborted ? new Error('it took longer than an hour') : error);
    } finally {
      this.#active -= 1;
      this.#waiting.shift()?.();
    }
  }

  async #waitForTurn(onLine: (line: string) => void): Promise<void> {
    if (this.#active >= CONCURRENCY && !this.#closed.signal.aborted) {
      onLine('The Python environment is built when another one is complete.');
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    this.#active += 1;
  }

  #recordFailure(name: string, cause: unknown): BerthError {
    const count = (this.#failures.get(name)?.count ?? 0) + 1;
    const pause = Math.min(MAX_RETRY_MS, MIN_RETRY_MS * 2 ** (count - 1));
    const message = cause instanceof Error ? cause.message : String(cause);
    const error = new BerthError(
      'rule',
      `the Python environment could not be built: ${message} (tried again after ${pause / 1000} s, or ` +
        'when the endpoint is deployed again)',
      { cause },
    );
    this.#failures.set(name, { error, count, retryAt: this.#clock.now() + pause });
    return error;
  }
}
