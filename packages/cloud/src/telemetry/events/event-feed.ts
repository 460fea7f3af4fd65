import type { AccountEvent } from '../../domain/account-event.ts';

/** So many events are kept for readers that reconnect. */
const MAX_EVENTS = 4_096;
/** Events are kept this long after the last reader has gone, so that one that reconnects misses nothing. */
const KEEP_WITHOUT_READERS_MS = 120_000;

export interface StoredEvent {
  seq: number;
  accountId: string;
  at: number;
  event: AccountEvent;
}

/** What a reader gets: first where it stands, then the events, and `reset` whenever some are lost to it. */
export type FeedItem =
  | { kind: 'ready'; id: string; resumed: boolean }
  | { kind: 'reset'; id: string }
  | { kind: 'event'; id: string; stored: StoredEvent };

export interface ReadOptions {
  accountId: string;
  /** The id of the last event that the reader has. */
  after: string | undefined;
  /** Ends after the known events instead of waiting for more. */
  follow: boolean;
  accepts(event: AccountEvent): boolean;
  signal: AbortSignal;
}

/**
 * The last events of this server, in a ring. A reader holds only its position, so a slow one costs no memory:
 * once the ring has overtaken it, it gets `reset`. Ids name the server's start too; those of another server or
 * start are answered with `reset`.
 */
export class EventFeed {
  readonly #epoch: string;
  readonly #now: () => number;
  readonly #ring: (StoredEvent | undefined)[] = Array.from({ length: MAX_EVENTS });
  #next = 1;
  /** The first event that a reader may resume after. Earlier ones were not recorded, or are overwritten. */
  #first = 1;
  readonly #readers = new Set<() => void>();
  #lastReaderLeftAt = -Infinity;
  #closed = false;

  /** `epoch` is different with every start of a server. */
  constructor(epoch: string, now: () => number) {
    this.#epoch = epoch;
    this.#now = now;
  }

  /** Whether anybody reads, or may come back soon. While nobody does, nothing has to be recorded. */
  get isActive(): boolean {
    if (this.#readers.size > 0) return true;
    if (performance.now() - this.#lastReaderLeftAt < KEEP_WITHOUT_READERS_MS) return true;
    // What happens from now on is not recorded: nobody can resume before it.
    this.#first = this.#next;
    return false;
  }

  add(accountId: string, event: AccountEvent): void {
    if (!this.isActive) return;
    const seq = this.#next;
    this.#ring[seq % MAX_EVENTS] = { seq, accountId, at: this.#now(), event };
    this.#next += 1;
    this.#first = Math.max(this.#first, this.#next - MAX_EVENTS);
    for (const wake of this.#readers) wake();
  }

  /** Every event after the given one and from now on, until the signal. */
  async *read({ accountId, after, follow, accepts, signal }: ReadOptions): AsyncGenerator<FeedItem> {
    // Decided before this reader counts: it must not resume over a time when nothing was recorded.
    const position = this.isActive ? this.#position(after) : undefined;
    let wake = (): void => undefined;
    const reader = (): void => wake();
    this.#readers.add(reader);
    signal.addEventListener('abort', reader, { once: true });
    try {
      let next = position ?? this.#next;
      const id = this.#id(next - 1);
      yield after === undefined || position !== undefined
        ? { kind: 'ready', id, resumed: position !== undefined }
        : { kind: 'reset', id };
      while (!signal.aborted && !this.#closed) {
        if (next < this.#first) {
          next = this.#next;
          yield { kind: 'reset', id: this.#id(next - 1) };
          continue;
        }
        if (next >= this.#next) {
          if (!follow) return;
          await new Promise<void>((resolve) => (wake = resolve));
          continue;
        }
        const stored = this.#ring[next % MAX_EVENTS] as StoredEvent;
        next += 1;
        if (stored.accountId === accountId && accepts(stored.event))
          yield { kind: 'event', id: this.#id(stored.seq), stored };
      }
    } finally {
      signal.removeEventListener('abort', reader);
      this.#readers.delete(reader);
      this.#lastReaderLeftAt = performance.now();
    }
  }

  /** The server stops: ends all readers. */
  close(): void {
    this.#closed = true;
    for (const wake of this.#readers) wake();
  }

  #id(seq: number): string {
    return `${this.#epoch}-${seq}`;
  }

  /** The event after this one; undefined where it is not known any more, or was never here. */
  #position(after: string | undefined): number | undefined {
    const [, epoch, seq] = /^(\w+)-(\d{1,15})$/.exec(after ?? '') ?? [];
    if (epoch !== this.#epoch) return undefined;
    const next = Number(seq) + 1;
    return next >= this.#first && next <= this.#next ? next : undefined;
  }
}
