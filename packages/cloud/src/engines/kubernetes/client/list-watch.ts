import { setTimeout as pause } from 'node:timers/promises';
import type { KubernetesClient, Query } from './kubernetes-client.ts';
import { KubernetesApiError } from './kubernetes.errors.ts';
import { listObjects } from './list-objects.ts';

export interface KubernetesObject {
  metadata: { name: string; uid: string; resourceVersion?: string };
}

interface WatchEvent<T> {
  type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  object: T & { code?: number; reason?: string; message?: string };
}

export interface ListWatchOptions<T> {
  client: Pick<KubernetesClient, 'get' | 'stream'>;
  path: string;
  query: Query;
  /** Takes what is needed of an object, so that the rest is not kept in memory. */
  select?: (object: T) => T;
  /** All objects that there are, after every list. */
  onList: (objects: T[]) => Promise<void>;
  onChange: (type: 'ADDED' | 'MODIFIED' | 'DELETED', object: T) => Promise<void>;
  onProblem: (what: string, error: unknown) => void;
  timing?: Partial<ListWatchTiming>;
  random?: () => number;
}

export interface ListWatchTiming {
  /** A watch that says nothing for this long is given up: the API server sends a bookmark every minute. */
  idleMs: number;
  /** Everything is listed again after this time, in case an event was lost. */
  relistMs: number;
  minBackoffMs: number;
  maxBackoffMs: number;
}

const TIMING: ListWatchTiming = {
  idleMs: 100_000,
  relistMs: 600_000,
  minBackoffMs: 200,
  maxBackoffMs: 30_000,
};
const GONE = 410;
const TOO_MANY_REQUESTS = 429;

/**
 * Follows the objects of one kind: lists them, then watches for changes from there. It never gives up: after
 * an error, a silent connection or a version that is too old it begins again, with growing random delays.
 */
export class ListWatch<T extends KubernetesObject> {
  readonly #options: ListWatchOptions<T>;
  readonly #timing: ListWatchTiming;
  readonly #random: () => number;
  readonly #closing = new AbortController();
  readonly #running: Promise<void>;
  #lastContact: number | undefined;

  constructor(options: ListWatchOptions<T>) {
    this.#options = options;
    this.#timing = { ...TIMING, ...options.timing };
    this.#random = options.random ?? Math.random;
    this.#running = this.#run();
  }

  /** How old what it knows may be; undefined before the first list. */
  get ageMs(): number | undefined {
    return this.#lastContact === undefined ? undefined : performance.now() - this.#lastContact;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    let failures = 0;
    while (!signal.aborted) {
      try {
        const version = await this.#list();
        failures = 0;
        await this.#watch(version);
      } catch (error) {
        if (signal.aborted) return;
        if (failures === 0)
          this.#options.onProblem('the Kubernetes cluster cannot be watched; trying again', error);
        failures += 1;
        await this.#backOff(failures, error);
      }
    }
  }

  async #backOff(failures: number, error: unknown): Promise<void> {
    const { minBackoffMs, maxBackoffMs } = this.#timing;
    const longest = Math.min(maxBackoffMs, minBackoffMs * 2 ** Math.min(failures, 16));
    const asked = error instanceof KubernetesApiError ? (error.retryAfterMs ?? 0) : 0;
    // Servers that lost the API server together do not come back together.
    const delay = Math.max(asked, longest / 2 + (this.#random() * longest) / 2);
    await pause(delay, undefined, { signal: this.#closing.signal, ref: false }).catch(() => undefined);
  }

  async #list(): Promise<string> {
    const { client, path, query, select = same, onList } = this.#options;
    const { signal } = this.#closing;
    const { objects, resourceVersion } = await listObjects(client, path, query, select, { signal });
    this.#lastContact = performance.now();
    await onList(objects);
    return resourceVersion;
  }

  /** Returns when it is time to list again. */
  async #watch(from: string): Promise<void> {
    const until = performance.now() + this.#timing.relistMs;
    let version = from;
    let failures = 0;
    while (!this.#closing.signal.aborted && performance.now() < until) {
      try {
        version = await this.#watchOnce(version, until, () => (failures = 0));
      } catch (error) {
        if (this.#closing.signal.aborted) return;
        if (error instanceof KubernetesApiError && error.status === GONE) return;
        const isBusy = error instanceof KubernetesApiError && error.status === TOO_MANY_REQUESTS;
        failures += 1;
        // A broken connection alone: the changes since then are still there. More of them: everything again.
        if (failures > 3 && !isBusy) throw error;
        await this.#backOff(failures, error);
      }
    }
  }

  async #watchOnce(from: string, until: number, onContact: () => void): Promise<string> {
    const { client, path, query, select = same, onChange } = this.#options;
    const idle = new AbortController();
    const idleTimer = setTimeout(
      () => idle.abort(new Error('the watch was silent')),
      this.#timing.idleMs,
    ).unref();
    const signal = AbortSignal.any([this.#closing.signal, idle.signal]);
    let version = from;
    try {
      const response = await client.stream(
        path,
        {
          ...query,
          watch: true,
          allowWatchBookmarks: true,
          resourceVersion: from,
          timeoutSeconds: Math.max(1, Math.ceil((until - performance.now()) / 1000)),
        },
        signal,
      );
      for await (const { type, object } of eventsOf<T>(response)) {
        idleTimer.refresh();
        onContact();
        this.#lastContact = performance.now();
        if (type === 'ERROR')
          throw new KubernetesApiError(
            object.code ?? 500,
            object.reason ?? '',
            object.message ?? 'the watch failed',
          );
        version = object.metadata.resourceVersion ?? version;
        if (type !== 'BOOKMARK') await onChange(type, select(object));
      }
      return version;
    } finally {
      clearTimeout(idleTimer);
    }
  }
}

function same<T>(object: T): T {
  return object;
}

/** One JSON object per line. */
async function* eventsOf<T>(stream: AsyncIterable<Buffer>): AsyncGenerator<WatchEvent<T>, void, undefined> {
  let rest = '';
  const decoder = new TextDecoder();
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line !== '') yield JSON.parse(line) as WatchEvent<T>;
  }
}
