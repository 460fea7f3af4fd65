import { constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { open } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { formatBytes } from '../../support/byte-size.ts';
import { type Clock, fromWall, monotonicNow } from '../../support/clock.ts';
import { heavyTurns } from '../../support/fair-turns.ts';
import type { NewLogLines, NewLogRecord } from '../logs/log-record.ts';
import { plainLines, splitLines } from '../logs/log-record.ts';
import type { SegmentedLog } from '../logs/segmented-log.ts';
import { deleteOutputFile, listOutputFiles, type OutputFile, sizeOf } from './output-files.ts';
import { OutputRate } from '../logs/output-rate.ts';

const CHUNK_BYTES = 256 * 1024;
/** This amount takes 0.5 ms, or 5 ms in short lines that have to be checked one by one. */
const HEAVY_BYTES = 64 * 1024;
/** Longer lines are split. */
const MAX_LINE_BYTES = 64 * 1024;
/** Of output that comes too fast, the newest files are kept. */
const KEPT_FILES = 2;
const CARRIAGE_RETURN = 0x0d;

interface LoggableOutput {
  output: ({ line: Buffer } | { lines: Buffer; count: number })[];
  bytes: number;
  newlines: number;
}

export interface OutputSpoolOptions {
  /** The folder of the output writer. */
  folder: string;
  /** The run of the instance that wrote the output. The log's mark is `<run> <file> <offset> <lines>`. */
  run: string;
  log: SegmentedLog;
  clock: Clock;
  /** The limit of what is logged, in bytes per second; as much as the log holds may come at once. */
  bytesPerSecond: number;
  /** Waits; for tests. */
  pause?: (milliseconds: number, signal: AbortSignal) => Promise<void>;
}

/**
 * Copies an instance's output from the files of its output writer to its log. The writer is a process of its
 * own, so the instance neither waits for Berth nor ends with it, and output that is written while Berth is
 * down is read later. The files hold the newest output only. What is skipped, because Berth was down or the
 * output comes too fast, is not read: each file says how many lines came before it.
 */
export class OutputSpool {
  readonly #options: OutputSpoolOptions;
  readonly #rate: OutputRate;
  readonly #openedAt: number;
  readonly #ending = new AbortController();
  #file: (OutputFile & { handle: FileHandle }) | undefined;
  #offset = 0;
  /** Lines of the instance up to the offset, with those that were skipped. */
  #lines = 0;
  /** The begin of a line that continues in the current file. */
  #carried: Buffer = Buffer.alloc(0);
  /** Read, but the log may still need them after a crash. */
  #readFiles: OutputFile[] = [];
  #skippedLines = 0;
  /** Lines were skipped because they came too fast, and not because Berth was down. */
  #isTooFast = false;
  /** The current line is being split. */
  #isSplitting = false;
  #outputEnded = false;
  #isFirstDrain = true;
  #draining: Promise<void> | undefined;
  #nextDrain: Promise<void> | undefined;
  #closed = false;

  constructor(options: OutputSpoolOptions) {
    this.#options = options;
    this.#openedAt = options.clock.now();
    this.#rate = new OutputRate(options.bytesPerSecond, options.log.maxBytes);
  }

  /** Resolves when everything that was written before the call is in the log. */
  drain(): Promise<void> {
    if (this.#draining === undefined)
      return (this.#draining = this.#copyToLog().finally(() => (this.#draining = undefined)));
    return (this.#nextDrain ??= this.#draining
      .catch(() => undefined)
      .then(() => {
        this.#nextDrain = undefined;
        return this.drain();
      }));
  }

  /** Call after the last write: logs the rest, including a last line without a newline. */
  async finish(): Promise<void> {
    this.#outputEnded = true;
    this.#ending.abort();
    await this.drain();
    await this.close();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#ending.abort();
    await (this.#nextDrain ?? this.#draining)?.catch(() => undefined);
    const file = this.#file;
    this.#file = undefined;
    await file?.handle.close();
  }

  async #copyToLog(): Promise<void> {
    if (this.#closed || (this.#file === undefined && !(await this.#openFirst()))) return;
    const end = await this.#endOfOutput();
    while (!this.#closed) {
      await this.#keepToRate();
      if (!(await this.#copyChunk()) && !(await this.#openNext())) break;
      if (!this.#outputEnded && this.#hasReached(end)) break;
    }
    if (this.#outputEnded && !this.#closed) await this.#copyChunk(true);
    this.#isFirstDrain = false;
  }

  /** Whether the position is at or after this one. */
  #hasReached({ number, offset }: { number: number; offset: number }): boolean {
    const current = this.#file?.number ?? 0;
    return current > number || (current === number && this.#offset >= offset);
  }

  async #endOfOutput(): Promise<{ number: number; offset: number }> {
    const last = (await listOutputFiles(this.#options.folder)).at(-1);
    return last === undefined
      ? { number: 0, offset: 0 }
      : { number: last.number, offset: await sizeOf(last) };
  }

  /** Continues at the log's mark, in the same run only. */
  async #openFirst(): Promise<boolean> {
    const { folder, run, log } = this.#options;
    const files = await listOutputFiles(folder);
    const [markedRun, ...position] = log.mark.split(' ');
    // The mark of an earlier version was `<run> <offset>`.
    const numbers = position.length === 1 ? [1, ...position.map(Number), 0] : position.map(Number);
    const [number = 1, offset = 0, lines = 0] = markedRun === run ? numbers : [];
    this.#lines = lines;
    const file = files.find((one) => one.number === number);
    return this.#switchTo(file ?? files.find((one) => one.number > number), file === undefined ? 0 : offset);
  }

  async #openNext(): Promise<boolean> {
    const current = this.#file;
    const files = await listOutputFiles(this.#options.folder);
    const next = files.find(({ number }) => number > (current?.number ?? 0));
    if (next === undefined || current === undefined) return false;
    // The writer may have added to the file before it began the next one.
    if (await this.#copyChunk()) return true;
    const rest = await readChunk(current.handle, this.#offset);
    return this.#switchTo(next, 0, Buffer.concat([this.#carried, rest]));
  }

  /** Returns false if there is no file, or if the writer has just deleted it. */
  async #switchTo(
    file: OutputFile | undefined,
    offset: number,
    carried: Buffer = Buffer.alloc(0),
  ): Promise<boolean> {
    if (file === undefined) return false;
    const handle = await openIfThere(file.path);
    if (handle === undefined) return false;
    const skipped = offset === 0 ? Math.max(0, file.linesBefore - this.#lines) : 0;
    if (this.#file !== undefined) {
      await this.#file.handle.close();
      this.#readFiles.push(this.#file);
    }
    this.#file = { ...file, handle };
    this.#offset = offset;
    this.#skippedLines += skipped;
    this.#lines += skipped;
    this.#carried = skipped > 0 ? Buffer.alloc(0) : carried;
    if (skipped > 0) this.#isSplitting = false;
    return true;
  }

  /** Waits while the output comes too fast, and then continues with the newest files. */
  async #keepToRate(): Promise<void> {
    const wait = this.#rate.waitMs(monotonicNow(this.#options.clock));
    if (wait === 0 || this.#outputEnded) return;
    this.#isTooFast = true;
    await (this.#options.pause ?? pauseUntilAborted)(wait, this.#ending.signal);
    const newest = (await listOutputFiles(this.#options.folder)).at(-KEPT_FILES);
    if (newest !== undefined && newest.number > (this.#file?.number ?? 0)) await this.#switchTo(newest, 0);
  }

  /** Returns whether there was something to log. */
  async #copyChunk(isLast = false): Promise<boolean> {
    const file = this.#file;
    if (file === undefined) return false;
    const { log, clock } = this.#options;
    const read = await readChunk(file.handle, this.#offset);
    if (read.length >= HEAVY_BYTES) await heavyTurns.next(this.#options.run);
    const chunk = this.#carried.length === 0 ? read : Buffer.concat([this.#carried, read]);
    const { output, bytes, newlines } = this.#plainOutput(chunk, isLast) ?? this.#linesIn(chunk, isLast);
    if (bytes === 0) return false;
    // Taken after the read: a line must not be dated before it was written.
    const ts = this.#isFirstDrain ? await this.#timeOfFirstOutput(file.handle) : clock.now();
    this.#offset += bytes - this.#carried.length;
    this.#carried = Buffer.alloc(0);
    this.#lines += newlines;
    this.#rate.add(bytes, monotonicNow(this.#options.clock));
    const records: (NewLogRecord | NewLogLines)[] = output.map((one) => ({
      ts,
      source: 'container',
      ...one,
    }));
    if (this.#skippedLines > 0) records.unshift({ ts, source: 'system', line: this.#skipMessage() });
    await log.append(records, this.#mark());
    this.#skippedLines = 0;
    for (const done of this.#readFiles.splice(0)) await deleteOutputFile(done);
    return true;
  }

  /** Output from before this process has the file's modification time, the best estimate there is. */
  async #timeOfFirstOutput(handle: FileHandle): Promise<number> {
    const { clock } = this.#options;
    const { mtimeMs } = await handle.stat();
    const at = fromWall(clock, Math.round(mtimeMs));
    return at < this.#openedAt ? at : clock.now();
  }

  /** The common case: complete lines, logged as they are. Undefined if each line has to be checked. */
  #plainOutput(chunk: Buffer, isLast: boolean): LoggableOutput | undefined {
    if (this.#isSplitting) return undefined;
    const plain = plainLines(chunk, MAX_LINE_BYTES);
    if (plain === undefined) return undefined;
    const { lines, count } = plain;
    const rest = chunk.length - lines.length;
    if (rest >= MAX_LINE_BYTES || (isLast && rest > 0)) return undefined;
    return { output: count === 0 ? [] : [{ lines, count }], bytes: lines.length, newlines: count };
  }

  /**
   * The lines that can be logged now, and the bytes they take. A line without a newline waits for it, unless
   * it is over the limit or the output has ended.
   */
  #linesIn(chunk: Buffer, isLast: boolean): LoggableOutput {
    const { lines, rest } = splitLines(chunk);
    const ready: Buffer[] = [];
    let bytes = 0;
    for (const line of lines) {
      bytes += line.length + 1;
      // An empty rest here only ends a line whose pieces are all logged.
      if (!this.#isSplitting || line.length > 0) ready.push(...splitLongLine(withoutReturn(line)));
      this.#isSplitting = false;
    }
    const readyBytes = isLast ? rest.length : rest.length - (rest.length % MAX_LINE_BYTES);
    if (readyBytes > 0) {
      ready.push(...splitLongLine(rest.subarray(0, readyBytes)));
      bytes += readyBytes;
      this.#isSplitting = true;
    }
    return { output: ready.map((line) => ({ line })), bytes, newlines: lines.length };
  }

  #mark(): string {
    return `${this.#options.run} ${this.#file?.number ?? 1} ${this.#offset} ${this.#lines}`;
  }

  #skipMessage(): string {
    const lines = `${this.#skippedLines.toLocaleString('en')} ${this.#skippedLines === 1 ? 'line' : 'lines'}`;
    const reason =
      this.#isFirstDrain && !this.#isTooFast
        ? 'too much was written while Berth was not running'
        : `it wrote more than ${formatBytes(this.#options.bytesPerSecond)}/s`;
    return `[berth: ${lines} dropped, ${reason}]`;
  }
}

async function pauseUntilAborted(milliseconds: number, signal: AbortSignal): Promise<void> {
  await pause(milliseconds, undefined, { signal }).catch(() => undefined);
}

async function readChunk(file: FileHandle, offset: number): Promise<Buffer> {
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  const { bytesRead } = await file.read(chunk, 0, CHUNK_BYTES, offset);
  return chunk.subarray(0, bytesRead);
}

function splitLongLine(line: Buffer): Buffer[] {
  if (line.length <= MAX_LINE_BYTES) return [line];
  return Array.from({ length: Math.ceil(line.length / MAX_LINE_BYTES) }, (_, index) =>
    line.subarray(index * MAX_LINE_BYTES, (index + 1) * MAX_LINE_BYTES),
  );
}

function withoutReturn(line: Buffer): Buffer {
  return line.at(-1) === CARRIAGE_RETURN ? line.subarray(0, -1) : line;
}

/** An instance that runs as Berth's own user can put a link there: Berth may read what others may not see. */
async function openIfThere(path: string): Promise<FileHandle | undefined> {
  try {
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    if ((await file.stat()).isFile()) return file;
    await file.close();
    return undefined;
  } catch (error) {
    if (['ENOENT', 'ELOOP'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
}
