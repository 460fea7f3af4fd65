import { setTimeout as pause } from 'node:timers/promises';
import type { Clock } from '../../support/clock.ts';
import { fromWall } from '../../support/clock.ts';
import { SegmentedLog } from '../logs/segmented-log.ts';
import type { LogLine, LogQuery } from '../../domain/log-line.ts';
import type { Daemon } from './daemon.ts';
import { openDaemonLog, readDaemonLog } from './daemon-log.ts';
import { isNotFound } from './docker.errors.ts';
import { startsAtAnchor, LogCursor } from './log-cursor.ts';
import type { DaemonLine } from './daemon-log-lines.ts';

/** Delays between attempts to reconnect; the last one repeats. */
const RETRY_DELAYS_MS = [100, 500, 1000, 5000];
/** The longest time that the daemon's stream may lag behind its log. */
const MAX_STREAM_LAG_MS = 2000;
/** The shortest interval between two readings from the anchor. */
const REREAD_INTERVAL_MS = 200;

export interface ContainerLogOptions {
  daemon: Daemon;
  containerId: string;
  /** The folder of the instance's log. */
  folder: string;
  clock: Clock;
  /**
   * Called when the daemon's stream ends: the container has ended or the connection broke. Returns whether
   * the container still runs.
   */
  onStreamEnd: () => Promise<boolean>;
  onProblem: (what: string, error: unknown) => void;
}

/**
 * Copies a container's output from the daemon to the instance's log, which also has the system lines and
 * outlives the container. The daemon keeps the output meanwhile, so what is written while Berth is down is
 * read later.
 */
export class ContainerLog {
  readonly #deps: ContainerLogOptions;
  readonly #closing = new AbortController();
  #log: SegmentedLog | undefined;
  #cursor: LogCursor | undefined;
  #writing: Promise<unknown> = Promise.resolve();
  #following: Promise<void> | undefined;
  #finishing: Promise<void> | undefined;
  /** The newest timestamp read so far, in the daemon's format. */
  #newest = '';

  constructor(options: ContainerLogOptions) {
    this.#deps = options;
  }

  /** Copies the output to this log from now on. */
  captureOutput(log: SegmentedLog): void {
    this.#log = log;
    this.#cursor = new LogCursor(this.#deps.containerId, log.mark);
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
      if (new LogCursor(this.#deps.containerId, mark).complete) return;
      this.#log = await SegmentedLog.open(this.#deps.folder);
      this.#cursor = new LogCursor(this.#deps.containerId, mark);
    }
    const [log, cursor] = [this.#log, this.#cursor as LogCursor];
    try {
      await this.#read({ last: true });
    } catch (error) {
      // The container was removed from outside, with its last output.
      if (!isNotFound(error)) throw error;
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

  /**
   * Podman's stream sometimes misses lines, its log does not. So the stream only signals when to read the
   * log.
   */
  async #readWithRetries(): Promise<void> {
    const { signal } = this.#closing;
    const stream = await openDaemonLog(await this.#deps.daemon.client(), {
      container: this.#deps.containerId,
      follow: true,
      tail: 0,
      signal,
    });
    let dataReady = Promise.withResolvers<void>();
    let isClosed = false;
    stream.on('data', () => dataReady.resolve());
    stream.on('error', () => stream.destroy());
    stream.on('close', () => {
      isClosed = true;
      dataReady.resolve();
    });
    while (!isClosed) {
      await this.#read({});
      await dataReady.promise;
      dataReady = Promise.withResolvers<void>();
      if (!isClosed) await pause(REREAD_INTERVAL_MS, undefined, { signal });
    }
  }

  /**
   * Waits until everything that the daemon has now is logged. If the daemon does not answer, the log is used
   * as it is.
   */
  async #catchUp(): Promise<void> {
    const log = this.#log;
    if (log === undefined) return;
    try {
      if (await this.#deps.daemon.isPodman()) return await this.#read({});
      const lag = AbortSignal.any([AbortSignal.timeout(MAX_STREAM_LAG_MS), this.#closing.signal]);
      const last = await this.#lastLine();
      while (this.#newest < last && !lag.aborted && !log.ended) await log.waitForChange(lag);
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

  /** Several reads may run at once: lines are numbered, and each is logged by the first reader. */
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
      await this.#runInOrder(() => this.#logLines(lines, from, cursor));
    }
  }

  async #logLines(lines: readonly DaemonLine[], from: number, cursor: LogCursor): Promise<void> {
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
