import { setTimeout as pause } from 'node:timers/promises';
import { DEFAULT_LOG_LIMITS } from '../../domain/limits.ts';
import { formatBytes } from '../../support/byte-size.ts';
import type { Clock } from '../../support/clock.ts';
import { fromWall, monotonicNow } from '../../support/clock.ts';
import { SegmentedLog } from './segmented-log.ts';
import type { LogLine, LogQuery } from '../../domain/log-line.ts';
import { startsAtAnchor, LogCursor } from './log-cursor.ts';
import { OutputRate } from './output-rate.ts';
import type { SourceLine } from './source-line.ts';

/** Delays between attempts to reconnect; the last one repeats. */
const RETRY_DELAYS_MS = [100, 500, 1000, 5000, 15_000];
/** A stream that ends sooner, while its container runs, is asked for more and more seldom. */
const SHORT_STREAM_MS = 5_000;
/** The longest time that the stream may lag behind the runtime's log. */
const MAX_STREAM_LAG_MS = 2000;
/** The shortest interval between two readings from the anchor. */
const REREAD_INTERVAL_MS = 200;
/** How often the log says that it falls behind. */
const BEHIND_INTERVAL_MS = 60_000;

export interface OutputQuery {
  signal: AbortSignal;
  /** Whole seconds since 1970: not every runtime handles fractions exactly. */
  since?: number;
  /** Only this many of the last lines. */
  tail?: number;
  /** Continue until the container ends. */
  follow?: boolean;
  /** The container has ended: an unfinished line counts as a line. */
  last?: boolean;
}

/** The output of one container, as its runtime keeps it. */
export interface OutputSource {
  /** Identifies the run of the container in the mark of a log. */
  readonly containerId: string;
  /** A few lines at a time. */
  read(query: OutputQuery): AsyncIterable<SourceLine[]>;
  /**
   * Where a followed stream may miss lines that the log has: resolves to a function that waits for new
   * output; it resolves to false when the stream has ended.
   */
  openNotifier?(signal: AbortSignal): Promise<(() => Promise<boolean>) | undefined>;
  /** Whether the error means that the container and its log are gone. */
  isGone(error: unknown): boolean;
  /** The system line where the runtime has dropped output. */
  readonly lostLines: string;
}

export interface OutputLogOptions {
  source: OutputSource;
  /** The folder of the instance's log. */
  folder: string;
  clock: Clock;
  /**
   * Called when the stream ends: the container has ended or the connection broke. Returns whether
   * the container still runs.
   */
  onStreamEnd: () => Promise<boolean>;
  onProblem: (what: string, error: unknown) => void;
  /** The limit of what is read, in bytes per second; as much as a log holds may come at once. */
  bytesPerSecond?: number;
  /** Waits; for tests. */
  pause?(milliseconds: number, signal: AbortSignal): Promise<void>;
}

/**
 * Copies a container's output from its runtime to the instance's log, which also has the system lines and
 * outlives the container. The runtime keeps the output meanwhile, so what is written while Berth is down is
 * read later.
 */
export class OutputLog {
  readonly #deps: OutputLogOptions;
  readonly #closing = new AbortController();
  #log: SegmentedLog | undefined;
  #cursor: LogCursor | undefined;
  #writing: Promise<unknown> = Promise.resolve();
  #following: Promise<void> | undefined;
  #finishing: Promise<void> | undefined;
  /** The stream only signals when to read. */
  #isNotified = false;
  /** The newest timestamp read so far, in the runtime's format. */
  #newest = '';
  readonly #bytesPerSecond: number;
  readonly #rate: OutputRate;
  #saidBehindAt = -Infinity;

  constructor(options: OutputLogOptions) {
    this.#deps = options;
    this.#bytesPerSecond = options.bytesPerSecond ?? DEFAULT_LOG_LIMITS.bytesPerSecond;
    this.#rate = new OutputRate(this.#bytesPerSecond, DEFAULT_LOG_LIMITS.bytes);
  }

  /** Copies the output to this log from now on. */
  captureOutput(log: SegmentedLog): void {
    this.#log = log;
    this.#cursor = new LogCursor(this.#deps.source.containerId, log.mark);
    this.#following = this.#follow();
  }

  /** Logs the remaining output and the exit messages. */
  finish(exitMessages: readonly string[], endedAt: number): Promise<void> {
    this.#finishing ??= this.#finish(exitMessages, endedAt).catch((error: unknown) => {
      this.#finishing = undefined;
      throw error;
    });
    return this.#finishing;
  }

  async *lines(query: LogQuery, signal: AbortSignal | undefined): AsyncGenerator<LogLine, void, undefined> {
    await this.#catchUp();
    yield* (this.#log ?? (await SegmentedLog.openReadOnly(this.#deps.folder))).lines(query, signal);
  }

  /** Adds the line after all output written so far. */
  async logSystemLine(line: string): Promise<void> {
    await this.#catchUp();
    const record = { ts: this.#deps.clock.now(), source: 'system' as const, line };
    if (this.#log !== undefined) return this.#log.append([record]);
    const log = await SegmentedLog.open(this.#deps.folder);
    await log.append([record]);
    await log.end();
  }

  /** Stops reading; the container keeps running. */
  async detach(): Promise<void> {
    this.#closing.abort();
    await this.#following;
    await this.#writing;
    await this.#log?.end();
  }

  async #finish(exitMessages: readonly string[], endedAt: number): Promise<void> {
    if (this.#log === undefined) {
      const { mark } = await SegmentedLog.openReadOnly(this.#deps.folder);
      if (new LogCursor(this.#deps.source.containerId, mark).complete) return;
      this.#log = await SegmentedLog.open(this.#deps.folder);
      this.#cursor = new LogCursor(this.#deps.source.containerId, mark);
    }
    const [log, cursor] = [this.#log, this.#cursor as LogCursor];
    try {
      await this.#read({ last: true });
    } catch (error) {
      if (!this.#deps.source.isGone(error)) throw error;
      // The container was removed with its log; a stream that is still open may have its last output.
      await Promise.race([this.#following, pause(MAX_STREAM_LAG_MS, undefined, { ref: false })]);
    }
    await this.#runInOrder(async () => {
      await log.append(
        exitMessages.map((line) => ({ ts: endedAt, source: 'system', line })),
        cursor.mark(cursor.written, true),
      );
      cursor.complete = true;
    });
    this.#closing.abort();
    this.#log = undefined;
    await log.end();
  }

  async #follow(): Promise<void> {
    const { signal } = this.#closing;
    let hasFailed = false;
    for (let failures = 0; !signal.aborted; ) {
      const begunAt = monotonicNow(this.#deps.clock);
      try {
        const nextOutput = await this.#deps.source.openNotifier?.(signal);
        this.#isNotified = nextOutput !== undefined;
        if (nextOutput === undefined) await this.#read({ follow: true });
        else await this.#readWhenNotified(nextOutput);
        if (signal.aborted || !(await this.#deps.onStreamEnd())) return;
        failures = monotonicNow(this.#deps.clock) - begunAt < SHORT_STREAM_MS ? failures + 1 : 0;
        hasFailed = false;
      } catch (error) {
        if (signal.aborted) return;
        if (this.#deps.source.isGone(error) && !(await this.#isRunning())) return;
        if (!hasFailed)
          this.#deps.onProblem(
            'the output of a container could not be written to its log; trying again',
            error,
          );
        hasFailed = true;
        failures += 1;
      }
      const delay = RETRY_DELAYS_MS[Math.min(failures, RETRY_DELAYS_MS.length - 1)] as number;
      await (this.#deps.pause ?? pauseUntilAborted)(delay, signal);
    }
  }

  /** If that cannot be found out now, it is asked again. */
  #isRunning(): Promise<boolean> {
    return this.#deps.onStreamEnd().catch(() => true);
  }

  async #readWhenNotified(nextOutput: () => Promise<boolean>): Promise<void> {
    const { signal } = this.#closing;
    for (;;) {
      await this.#read({});
      if (!(await nextOutput())) return;
      await pause(REREAD_INTERVAL_MS, undefined, { signal });
    }
  }

  /**
   * Waits until everything that the runtime has now is logged. If it does not answer, the log is used as it
   * is.
   */
  async #catchUp(): Promise<void> {
    const log = this.#log;
    if (log === undefined) return;
    try {
      if (this.#isNotified) return await this.#read({});
      const lag = AbortSignal.any([AbortSignal.timeout(MAX_STREAM_LAG_MS), this.#closing.signal]);
      const last = await this.#lastLine();
      while (this.#newest < last && !lag.aborted && !log.ended) await log.waitForChange(lag);
    } catch (error) {
      if (!this.#closing.signal.aborted && !this.#deps.source.isGone(error))
        this.#deps.onProblem('the newest output of a container could not be read', error);
    }
  }

  async #lastLine(): Promise<string> {
    const read = this.#deps.source.read({ tail: 1, signal: this.#closing.signal });
    return (await Array.fromAsync(read)).flat().at(-1)?.stamp ?? '';
  }

  /** Several reads may run at once: lines are numbered, and each is logged by the first reader. */
  async #read({ follow = false, last = false }: { follow?: boolean; last?: boolean }): Promise<void> {
    const cursor = this.#cursor as LogCursor;
    const { anchor } = cursor;
    let { index } = anchor;
    let isFirst = true;
    for await (const lines of this.#deps.source.read({
      since: anchor.second,
      follow,
      last,
      signal: this.#closing.signal,
    })) {
      if (isFirst && !startsAtAnchor(anchor, lines[0] as SourceLine)) {
        await this.#runInOrder(() => this.#loseLines(cursor));
        ({ index } = cursor.anchor);
      }
      isFirst = false;
      const from = index;
      index += lines.length;
      await this.#runInOrder(() => this.#logLines(lines, from, cursor));
      if (!last) await this.#keepToRate(lines);
    }
  }

  /**
   * Output that comes too fast is left with the runtime, which keeps a bounded amount of it: neither this
   * process nor its disk shall be busy with one container.
   */
  async #keepToRate(lines: readonly SourceLine[]): Promise<void> {
    const { clock, pause: wait = pauseUntilAborted } = this.#deps;
    const now = monotonicNow(clock);
    this.#rate.add(
      lines.reduce((sum, { line }) => sum + line.length + 1, 0),
      now,
    );
    const milliseconds = this.#rate.waitMs(now);
    if (milliseconds === 0) return;
    if (now - this.#saidBehindAt >= BEHIND_INTERVAL_MS) {
      this.#saidBehindAt = now;
      const line =
        `[berth: it writes more than ${formatBytes(this.#bytesPerSecond)}/s; the log falls behind, ` +
        'and lines may be missing]';
      await this.#runInOrder(async () => this.#log?.append([{ ts: clock.now(), source: 'system', line }]));
    }
    await wait(milliseconds, this.#closing.signal);
  }

  async #logLines(lines: readonly SourceLine[], from: number, cursor: LogCursor): Promise<void> {
    lines.forEach((line, position) => {
      cursor.observe(from + position, line);
      if (line.stamp > this.#newest) this.#newest = line.stamp;
    });
    const fresh = lines.slice(Math.max(0, cursor.written - from));
    if (fresh.length === 0 || cursor.complete) return;
    const written = cursor.written + fresh.length;
    await this.#log?.append(
      fresh.map(({ ts, line }) => ({ ts: fromWall(this.#deps.clock, ts), source: 'container', line })),
      cursor.mark(written),
    );
    cursor.written = written;
  }

  async #loseLines(cursor: LogCursor): Promise<void> {
    cursor.skipLostLines();
    const line = this.#deps.source.lostLines;
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

async function pauseUntilAborted(milliseconds: number, signal: AbortSignal): Promise<void> {
  await pause(milliseconds, undefined, { signal }).catch(() => undefined);
}
