import { setTimeout as pause } from 'node:timers/promises';
import type { Clock } from '../../support/clock.ts';
import { LogBook } from '../logs/log-book.ts';
import type { LogLine, LogQuery } from '../logs/log-line.ts';
import type { Daemon } from './daemon.ts';
import { readDaemonLog } from './daemon-log.ts';
import { isGone } from './failure.ts';
import { LogCursor } from './log-cursor.ts';
import type { DaemonLine } from './log-lines.ts';

const TRY_AGAIN_MS = 500;

export interface ContainerLogParts {
  daemon: Daemon;
  containerId: string;
  /** Where the instance's log lies. */
  folder: string;
  clock: Clock;
  /** Told that the daemon has no more to say: the container has ended, or the daemon went away. Answers whether it still runs. */
  onSilence: () => Promise<boolean>;
  onProblem: (what: string, error: unknown) => void;
}

/**
 * Carries what a container writes from the daemon to the instance's log, where it has its place
 * among the system lines and stays when the container is gone. The daemon takes everything down
 * by itself; what it took down while nobody read is read later.
 */
export class ContainerLog {
  readonly #parts: ContainerLogParts;
  readonly #leaving = new AbortController();
  #book: LogBook | undefined;
  #cursor: LogCursor | undefined;
  #writing: Promise<unknown> = Promise.resolve();
  #following: Promise<void> | undefined;
  #finishing: Promise<void> | undefined;

  constructor(parts: ContainerLogParts) {
    this.#parts = parts;
  }

  /** Takes its output down from now on, into this book. */
  attend(book: LogBook): void {
    this.#book = book;
    this.#cursor = new LogCursor(this.#parts.containerId, book.mark);
    this.#following = this.#follow();
  }

  /** Writes down what is not yet, and how it ended. Nothing more will come. */
  finish(farewell: readonly string[], endedAt: number): Promise<void> {
    this.#finishing ??= this.#finish(farewell, endedAt).catch((error: unknown) => {
      this.#finishing = undefined;
      throw error;
    });
    return this.#finishing;
  }

  async *lines(query: LogQuery, signal: AbortSignal | undefined): AsyncGenerator<LogLine, void, undefined> {
    await this.#catchUp();
    yield* (this.#book ?? (await LogBook.read(this.#parts.folder))).lines(query, signal);
  }

  /** After everything that was written before. */
  async note(line: string): Promise<void> {
    await this.#catchUp();
    const record = { ts: this.#parts.clock.now(), source: 'system' as const, line };
    if (this.#book !== undefined) return this.#book.append([record]);
    const book = await LogBook.open(this.#parts.folder);
    await book.append([record]);
    await book.end();
  }

  /** Lets go of it; the daemon goes on. */
  async release(): Promise<void> {
    this.#leaving.abort();
    await this.#following;
    await this.#writing;
    await this.#book?.end();
  }

  async #finish(farewell: readonly string[], endedAt: number): Promise<void> {
    if (this.#book === undefined) {
      const { mark } = await LogBook.read(this.#parts.folder);
      if (new LogCursor(this.#parts.containerId, mark).complete) return;
      this.#book = await LogBook.open(this.#parts.folder);
      this.#cursor = new LogCursor(this.#parts.containerId, mark);
    }
    const [book, cursor] = [this.#book, this.#cursor as LogCursor];
    try {
      await this.#read(false, true);
    } catch (error) {
      // Somebody else removed it, with what it wrote last.
      if (!isGone(error)) throw error;
    }
    await this.#inTurn(async () => {
      await book.append(farewell.map((line) => ({ ts: endedAt, source: 'system', line })), cursor.mark(cursor.written, true));
      cursor.complete = true;
    });
    this.#leaving.abort();
    this.#book = undefined;
    await book.end();
  }

  async #follow(): Promise<void> {
    for (let first = true; !this.#leaving.signal.aborted; first = false) {
      try {
        if (!first) await pause(TRY_AGAIN_MS, undefined, { signal: this.#leaving.signal });
        await this.#read(true, false);
        if (this.#leaving.signal.aborted || !(await this.#parts.onSilence())) return;
      } catch (error) {
        if (this.#leaving.signal.aborted) return;
        this.#parts.onProblem('the output of a container could not be written to its log; trying again', error);
      }
    }
  }

  /** Where the daemon does not answer, what is in the log has to do. */
  async #catchUp(): Promise<void> {
    if (this.#book === undefined) return;
    try {
      await this.#read(false, false);
    } catch (error) {
      if (!this.#leaving.signal.aborted && !isGone(error)) this.#parts.onProblem('the newest output of a container could not be read', error);
    }
  }

  /** Several readings may go on at once: each line has its number, and is written down by whoever comes first. */
  async #read(follow: boolean, last: boolean): Promise<void> {
    const cursor = this.#cursor as LogCursor;
    const client = await this.#parts.daemon.client();
    let index = cursor.first;
    let isFirst = true;
    for await (const lines of readDaemonLog(client, { container: this.#parts.containerId, since: cursor.since, follow, last, signal: this.#leaving.signal })) {
      if (isFirst && !cursor.fits(lines[0] as DaemonLine)) {
        // Only the one that goes on from here may decide that lines are lost.
        if (!follow && !last) return;
        await this.#inTurn(() => this.#loseLines(cursor));
        index = cursor.first;
      }
      isFirst = false;
      const from = index;
      index += lines.length;
      await this.#inTurn(() => this.#take(lines, from, cursor));
    }
  }

  async #take(lines: readonly DaemonLine[], from: number, cursor: LogCursor): Promise<void> {
    lines.forEach((line, position) => cursor.observe(from + position, line));
    const fresh = lines.slice(Math.max(0, cursor.written - from));
    if (fresh.length === 0 || cursor.complete) return;
    const written = cursor.written + fresh.length;
    await this.#book?.append(fresh.map(({ ts, line }) => ({ ts, source: 'container', line })), cursor.mark(written));
    cursor.written = written;
  }

  async #loseLines(cursor: LogCursor): Promise<void> {
    cursor.jump();
    const line = 'Lines are missing here: Docker keeps only the newest of what is written while Berth is away.';
    await this.#book?.append([{ ts: this.#parts.clock.now(), source: 'system', line }], cursor.mark(cursor.written));
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#writing.then(work);
    this.#writing = done.catch(() => undefined);
    return done;
  }
}
