import type { Log } from '../../support/log.ts';
import { exportRequestJson } from './otlp-json.ts';
import type { Attributes, FinishedSpan } from './otlp-json.ts';

const BATCH_SIZE = 512;
/** Beyond this many, spans are dropped: a receiver that is away must not fill the memory. */
const MAX_QUEUED = 4_096;
const REQUEST_TIMEOUT_MS = 10_000;
const CLOSE_TIMEOUT_MS = 3_000;
const ATTEMPTS = 3;
const RETRY_PAUSE_MS = 1_000;
/** As OTLP says: these may go well later, all others never. */
const RETRYABLE = new Set([429, 502, 503, 504]);
const WARN_EVERY_MS = 60_000;

export interface SpanExporterOptions {
  /** Where batches are posted, with its path. */
  url: string;
  headers: Readonly<Record<string, string>>;
  resource: Attributes;
  /** How long a span waits for others at most. */
  delayMs: number;
  log: Log;
}

/** Sends spans in batches, as OTLP over HTTP in JSON. It never delays the code that creates them. */
export class SpanExporter {
  readonly #options: SpanExporterOptions;
  readonly counts = { exported: 0, dropped: 0 };
  #queue: FinishedSpan[] = [];
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | undefined;
  #closed = new AbortController();
  #warnedAt = -Infinity;

  constructor(options: SpanExporterOptions) {
    this.#options = options;
  }

  add(span: FinishedSpan): void {
    if (this.#queue.length >= MAX_QUEUED) {
      this.counts.dropped += 1;
      return;
    }
    this.#queue.push(span);
    if (this.#queue.length >= BATCH_SIZE) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), this.#options.delayMs).unref();
  }

  /** Sends what is left, if the receiver takes it in a moment. */
  async close(): Promise<void> {
    const late = setTimeout(() => this.#closed.abort(), CLOSE_TIMEOUT_MS);
    this.#flush();
    await this.#sending;
    clearTimeout(late);
    this.#closed.abort();
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sending ??= this.#sendAll().finally(() => (this.#sending = undefined));
  }

  async #sendAll(): Promise<void> {
    while (this.#queue.length > 0) {
      const batch = this.#queue.splice(0, BATCH_SIZE);
      const problem = await this.#send(exportRequestJson(batch, this.#options.resource));
      if (problem === undefined) this.counts.exported += batch.length;
      else {
        this.counts.dropped += batch.length;
        this.#warn(problem);
      }
    }
  }

  /** Why it could not be sent; undefined if it was. */
  async #send(body: string): Promise<string | undefined> {
    const { url, headers } = this.#options;
    for (let attempt = 1; ; attempt += 1) {
      let problem: string;
      try {
        const response = await fetch(url, {
          method: 'POST',
          headers: { ...headers, 'content-type': 'application/json' },
          body,
          signal: AbortSignal.any([AbortSignal.timeout(REQUEST_TIMEOUT_MS), this.#closed.signal]),
        });
        await response.body?.cancel();
        if (response.ok) return undefined;
        problem = `it answered ${response.status}`;
        if (!RETRYABLE.has(response.status)) return problem;
      } catch (error) {
        const { cause } = error as Error;
        problem = cause instanceof Error ? cause.message : (error as Error).message;
      }
      if (attempt === ATTEMPTS || this.#closed.signal.aborted) return problem;
      await this.#pause(RETRY_PAUSE_MS * attempt);
    }
  }

  #pause(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      this.#closed.signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true });
    });
  }

  #warn(problem: string): void {
    const now = performance.now();
    if (now - this.#warnedAt < WARN_EVERY_MS) return;
    this.#warnedAt = now;
    this.#options.log.warn({ url: this.#options.url, reason: problem }, 'traces could not be sent');
  }
}
