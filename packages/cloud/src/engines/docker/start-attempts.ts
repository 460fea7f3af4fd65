import type { BerthError } from '../../support/errors.ts';
import type { InstanceHandle } from '../instance.ts';
import type { LogBook } from '../logs/log-book.ts';

interface StartAttempt {
  leave: AbortController;
  book: Promise<LogBook | undefined>;
  handle: Promise<InstanceHandle>;
}

/** Goes on until the instance runs, or the signal ends it. It says into which book it writes as soon as it does. */
export type Starting = (signal: AbortSignal, hasBook: (book: LogBook) => void) => Promise<InstanceHandle>;

/** Starts that are under way, by the id of the instance. Whoever wishes the same gets the one that there is. */
export class StartAttempts {
  readonly #underWay = new Map<string, StartAttempt>();

  has(id: string): boolean {
    return this.#underWay.has(id);
  }

  async run(id: string, starting: Starting): Promise<InstanceHandle> {
    const earlier = this.#underWay.get(id);
    if (earlier !== undefined && !earlier.leave.signal.aborted) return earlier.handle;
    const { promise: book, resolve: hasBook } = Promise.withResolvers<LogBook | undefined>();
    const leave = new AbortController();
    const attempt = { leave, book, handle: starting(leave.signal, hasBook) };
    this.#underWay.set(id, attempt);
    try {
      return await attempt.handle;
    } finally {
      hasBook(undefined);
      if (this.#underWay.get(id) === attempt) this.#underWay.delete(id);
    }
  }

  /** Resolves as soon as a start that is under way has something to say; undefined where there is none, or when it has ended without. */
  async book(id: string): Promise<LogBook | undefined> {
    return this.#underWay.get(id)?.book;
  }

  /** Resolves when the start has ended. Whoever asked for it is told the reason. */
  async end(id: string, reason: BerthError): Promise<void> {
    const attempt = this.#underWay.get(id);
    attempt?.leave.abort(reason);
    await attempt?.handle.catch(() => undefined);
  }

  async endAll(reason: BerthError): Promise<void> {
    await Promise.all([...this.#underWay.keys()].map((id) => this.end(id, reason)));
  }
}
