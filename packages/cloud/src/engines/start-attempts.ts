import type { BerthError } from '../support/errors.ts';
import type { InstanceHandle } from './instance.ts';
import type { SegmentedLog } from './logs/segmented-log.ts';

interface StartAttempt {
  leave: AbortController;
  book: Promise<SegmentedLog | undefined>;
  handle: Promise<InstanceHandle>;
}

/** Runs until the instance runs or the signal aborts it. Calls `onLogOpened` as soon as its log is open. */
export type StartFunction = (
  signal: AbortSignal,
  onLogOpened: (book: SegmentedLog) => void,
) => Promise<InstanceHandle>;

/** The starts in progress, by instance id. A second caller gets the start that is in progress. */
export class StartAttempts {
  readonly #running = new Map<string, StartAttempt>();

  has(id: string): boolean {
    return this.#running.has(id);
  }

  async run(id: string, start: StartFunction): Promise<InstanceHandle> {
    const earlier = this.#running.get(id);
    if (earlier !== undefined && !earlier.leave.signal.aborted) return earlier.handle;
    const { promise: log, resolve: onLogOpened } = Promise.withResolvers<SegmentedLog | undefined>();
    const leave = new AbortController();
    const attempt = { leave, book: log, handle: start(leave.signal, onLogOpened) };
    this.#running.set(id, attempt);
    try {
      return await attempt.handle;
    } finally {
      onLogOpened(undefined);
      if (this.#running.get(id) === attempt) this.#running.delete(id);
    }
  }

  /**
   * Resolves when the log of a start in progress is open; undefined if there is no start, or it ended without
   * a log.
   */
  async book(id: string): Promise<SegmentedLog | undefined> {
    return this.#running.get(id)?.book;
  }

  /** Resolves when the start has ended. Its callers get the reason. */
  async cancel(id: string, reason: BerthError): Promise<void> {
    const attempt = this.#running.get(id);
    attempt?.leave.abort(reason);
    await attempt?.handle.catch(() => undefined);
  }

  async cancelAll(reason: BerthError): Promise<void> {
    await Promise.all([...this.#running.keys()].map((id) => this.cancel(id, reason)));
  }
}
