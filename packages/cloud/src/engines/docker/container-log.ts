import { setTimeout as pause } from 'node:timers/promises';
import type { Clock } from '../../support/clock.ts';
import { SegmentedLog } from '../logs/segmented-log.ts';
import type { LogLine, LogQuery } from '../../domain/log-line.ts';
import type { Daemon } from './daemon.ts';
import { openDaemonLog, readDaemonLog } from './daemon-log.ts';
import { isNotFound } from './docker.errors.ts';
import { startsAtAnchor, LogCursor } from './log-cursor.ts';
import type { DaemonLine } from './daemon-log-lines.ts';

/** Waits between tries to reach the daemon again, the last one over and over. */
const RETRY_DELAYS_MS = [100, 500, 1000, 5000];
/** How long the stream of a daemon may lag behind what the daemon has. */
const MAX_STREAM_LAG_MS = 2000;
/** At most so often everything since the anchor is read again, where it has to be. */
const REREAD_INTERVAL_MS = 200;

export interface ContainerLogOptions {
  daemon: Daemon;
  containerId: string;
  /** Where the instance's log lies. */
  folder: string;
  clock: Clock;
  /** Told that the daemon has no more to say: the container has ended, or the daemon went away. Answers whether it still runs. */
  onStreamEnd: () => Promise<boolean>;
  onProblem: (what: string, error: unknown) => void;
}

/**
 * Carries what a container writes from the daemon to the instance's log, where it has its place
 * among the system lines and stays when the container is gone. The daemon takes everything down
 * by itself; what it took down while nobody read is read later.
 */
export class ContainerLog {
  readonly #deps: ContainerLogOptions;
  readonly #closing = new AbortController();
  #log: SegmentedLog | undefined;
  #cursor: LogCursor | undefined;
  #writing: Promise<unknown> = Promise.resolve();
  #following: Promise<void> | undefined;
  #finishing: Promise<void> | undefined;
  /** The time of the newest line that was seen, as the daemon writes it. */
  #newest = '';

  constructor(parts: ContainerLogOptions) {
    this.#deps = parts;
  }

  /** Takes its output down from now on, into this book. */
  captureOutput(book: SegmentedLog): void {
    this.#log = book;
    this.#cursor = new LogCursor(this.#deps.containerId, book.mark);
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
    yield* (this.#log ?? (await SegmentedLog.openReadOnly(this.#deps.folder))).lines(query, signal);
  }

  /** After everything that was written before. */
  async logSystemLine(line: string): Promise<void> {
    await this.#catchUp();
    const record = { ts: this.#deps.clock.now(), source: 'system' as const, line };
    if (this.#log !== undefined) return this.#log.append([record]);
    const book = await SegmentedLog.open(this.#deps.folder);
    await book.append([record]);
    await book.end();
  }

  /** Lets go of it; the daemon goes on. */
  async detach(): Promise<void> {
    this.#closing.abort();
    await this.#following;
    await this.#writing;
    await this.#log?.end();
  }

  async #finish(farewell: readonly string[], endedAt: number): Promise<void> {
    if (this.#log === undefined) {
      const { mark } = await SegmentedLog.openReadOnly(this.#deps.folder);
      if (new LogCursor(this.#deps.containerId, mark).complete) return;
      this.#log = await SegmentedLog.open(this.#deps.folder);
      this.#cursor = new LogCursor(this.#deps.containerId, mark);
    }
    const [book, cursor] = [this.#log, this.#cursor as LogCursor];
    try {
      await this.#read({ last: true });
    } catch (error) {
      // Somebody else removed it, with what it wrote last.
      if (!isNotFound(error)) throw error;
    }
    await this.#runInOrder(async () => {
      await book.append(
        farewell.map((line) => ({ ts: endedAt, source: 'system', line })),
        cursor.mark(cursor.written, true),
      );
      cursor.complete = true;
    });
    this.#closing.abort();
    this.#log = undefined;
    await book.end();
  }

  async #follow(): Promise<void> {
    const { signal } = this.#closing;
    for (let failures = 0; !signal.aborted; ) {
      try {
        if (await this.#deps.daemon.isPodman()) await this.#readWithRetries();
        else await this.#read({ follow: true });
        if (signal.aborted || !(await this.#deps.onStreamEnd())) return;
        failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        if (failures === 0)
          this.#deps.onProblem(
            'the output of a container could not be written to its log; trying again',
            error,
          );
        failures += 1;
      }
      await pause(RETRY_DELAYS_MS[Math.min(failures, RETRY_DELAYS_MS.length - 1)], undefined, {
        signal,
      }).catch(() => undefined);
    }
  }

  /** Podman's stream leaves out lines at times, and its log does not. So the stream only tells when to look into the log. */
  async #readWithRetries(): Promise<void> {
    const { signal } = this.#closing;
    const stream = await openDaemonLog(await this.#deps.daemon.client(), {
      container: this.#deps.containerId,
      follow: true,
      tail: 0,
      signal,
    });
    let rung = Promise.withResolvers<void>();
    let isOver = false;
    stream.on('data', () => rung.resolve());
    stream.on('error', () => stream.destroy());
    stream.on('close', () => {
      isOver = true;
      rung.resolve();
    });
    while (!isOver) {
      await this.#read({});
      await rung.promise;
      rung = Promise.withResolvers<void>();
      if (!isOver) await pause(REREAD_INTERVAL_MS, undefined, { signal });
    }
  }

  /** Waits until everything is written down that the daemon has now. Where it does not answer, what is in the log has to do. */
  async #catchUp(): Promise<void> {
    const book = this.#log;
    if (book === undefined) return;
    try {
      if (await this.#deps.daemon.isPodman()) return await this.#read({});
      const lag = AbortSignal.any([AbortSignal.timeout(MAX_STREAM_LAG_MS), this.#closing.signal]);
      const last = await this.#lastLine();
      while (this.#newest < last && !lag.aborted && !book.ended) await book.waitForChange(lag);
    } catch (error) {
      if (!this.#closing.signal.aborted && !isNotFound(error))
        this.#deps.onProblem('the newest output of a container could not be read', error);
    }
  }

  async #lastLine(): Promise<string> {
    const client = await this.#deps.daemon.client();
    const lines = (
      await Array.fromAsync(
        readDaemonLog(client, { container: this.#deps.containerId, tail: 1, signal: this.#closing.signal }),
      )
    ).flat();
    return lines.at(-1)?.stamp ?? '';
  }

  /** Several readings may go on at once: each line has its number, and is written down by whoever comes first. */
  async #read({ follow = false, last = false }: { follow?: boolean; last?: boolean }): Promise<void> {
    const cursor = this.#cursor as LogCursor;
    const client = await this.#deps.daemon.client();
    const { anchor } = cursor;
    let { index } = anchor;
    let isFirst = true;
    for await (const lines of readDaemonLog(client, {
      container: this.#deps.containerId,
      since: anchor.second,
      follow,
      last,
      signal: this.#closing.signal,
    })) {
      if (isFirst && !startsAtAnchor(anchor, lines[0] as DaemonLine)) {
        await this.#runInOrder(() => this.#loseLines(cursor));
        ({ index } = cursor.anchor);
      }
      isFirst = false;
      const from = index;
      index += lines.length;
      await this.#runInOrder(() => this.#take(lines, from, cursor));
    }
  }

  async #take(lines: readonly DaemonLine[], from: number, cursor: LogCursor): Promise<void> {
    lines.forEach((line, position) => {
      cursor.observe(from + position, line);
      if (line.stamp > this.#newest) this.#newest = line.stamp;
    });
    const fresh = lines.slice(Math.max(0, cursor.written - from));
    if (fresh.length === 0 || cursor.complete) return;
    const written = cursor.written + fresh.length;
    await this.#log?.append(
      fresh.map(({ ts, line }) => ({ ts, source: 'container', line })),
      cursor.mark(written),
    );
    cursor.written = written;
  }

  async #loseLines(cursor: LogCursor): Promise<void> {
    cursor.skipLostLines();
    const line =
      'Lines are missing here: Docker keeps only the newest of what is written while Berth is away.';
    await this.#log?.append(
      [{ ts: this.#deps.clock.now(), source: 'system', line }],
      cursor.mark(cursor.written),
    );
  }

  #runInOrder(work: () => Promise<void>): Promise<void> {
    const done = this.#writing.then(work);
    this.#writing = done.catch(() => undefined);
    return done;
  }
}
