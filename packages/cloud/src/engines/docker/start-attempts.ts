import type { BerthError } from '../../support/errors.ts';
import type { InstanceHandle } from '../instance.ts';
import type { SegmentedLog } from '../logs/segmented-log.ts';

interface StartAttempt {
  leave: AbortController;
  book: Promise<SegmentedLog | undefined>;
  handle: Promise<InstanceHandle>;
}

/** Goes on until the instance runs, or the signal ends it. It says into which book it writes as soon as it does. */
export type StartFunction = (
  signal: AbortSignal,
  hasBook: (book: SegmentedLog) => void,
) => Promise<InstanceHandle>;

/** Starts that are under way, by the id of the instance. Whoever wishes the same gets the one that there is. */
export class StartAttempts {
  readonly #running = new Map<string, StartAttempt>();

  has(id: string): boolean {
    return this.#running.has(id);
  }

  async run(id: string, starting: StartFunction): Promise<InstanceHandle> {
    const earlier = this.#running.get(id);
    if (earlier !== undefined && !earlier.leave.signal.aborted) return earlier.handle;
    const { promise: log, resolve: hasBook } = Promise.withResolvers<SegmentedLog | undefined>();
    const leave = new AbortController();
    const attempt = { leave, book: log, handle: starting(leave.signal, hasBook) };
    this.#running.set(id, attempt);
    try {
      return await attempt.handle;
    } finally {
      hasBook(undefined);
      if (this.#running.get(id) === attempt) this.#running.delete(id);
    }
  }

  /** Resolves as soon as a start that is under way has something to say; undefined where there is none, or when it has ended without. */
  async book(id: string): Promise<SegmentedLog | undefined> {
    return this.#running.get(id)?.book;
  }

  /** Resolves when the start has ended. Whoever asked for it is told the reason. */
  async cancel(id: string, reason: BerthError): Promise<void> {
    const attempt = this.#running.get(id);
    attempt?.leave.abort(reason);
    await attempt?.handle.catch(() => undefined);
  }

  async cancelAll(reason: BerthError): Promise<void> {
    await Promise.all([...this.#running.keys()].map((id) => this.cancel(id, reason)));
  }
}
