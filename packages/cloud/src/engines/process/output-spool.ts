import { execFile } from 'node:child_process';
import type { FileHandle } from 'node:fs/promises';
import { open } from 'node:fs/promises';
import { promisify } from 'node:util';
import type { Clock } from '../../support/clock.ts';
import { fromWall } from '../../support/clock.ts';
import type { SegmentedLog } from '../logs/segmented-log.ts';
import { splitLines } from '../logs/log-record.ts';

const run = promisify(execFile);

const CHUNK_BYTES = 256 * 1024;
/** Longer lines are split. */
const MAX_LINE_BYTES = 64 * 1024;
/** Disk space of logged output is freed in steps of at least this size. */
const TRIM_THRESHOLD_BYTES = 4 * 1024 * 1024;
const BLOCK_BYTES = 4096;
const CARRIAGE_RETURN = 0x0d;
const NEWLINE = 0x0a;

export interface OutputSpoolOptions {
  path: string;
  /** The run of the instance that wrote the output. The log's mark is `<run> <offset>`. */
  run: string;
  log: SegmentedLog;
  clock: Clock;
}

/**
 * Copies an instance's output from its output file to its log. The instance writes to a file, not to a pipe,
 * so it neither waits for Berth nor ends with it. Output that is written while Berth is down is read later.
 * When there is more output than the log can hold, the oldest lines are only counted.
 */
export class OutputSpool {
  readonly #path: string;
  readonly #run: string;
  readonly #log: SegmentedLog;
  readonly #clock: Clock;
  #file: FileHandle | undefined;
  #offset: number;
  #trimmed: number;
  #canTrim = true;
  /** The current line is being split. */
  #isSplitting = false;
  #outputEnded = false;
  #isFirstDrain = true;
  readonly #openedAt: number;
  #draining: Promise<void> | undefined;
  #nextDrain: Promise<void> | undefined;
  #closed = false;

  constructor({ path, run: runName, log, clock }: OutputSpoolOptions) {
    this.#path = path;
    this.#run = runName;
    this.#log = log;
    this.#clock = clock;
    this.#openedAt = clock.now();
    const [markedRun, offset] = log.mark.split(' ');
    this.#offset = markedRun === runName ? Number(offset) : 0;
    this.#trimmed = 0;
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
    await this.drain();
    await this.close();
  }

  async close(): Promise<void> {
    this.#closed = true;
    await (this.#nextDrain ?? this.#draining)?.catch(() => undefined);
    const file = this.#file;
    this.#file = undefined;
    await file?.close();
  }

  async #copyToLog(): Promise<void> {
    if (this.#closed) return;
    const file = (this.#file ??= await openIfThere(this.#path));
    if (file === undefined) return;
    while (!this.#closed) {
      const { size } = await file.stat();
      if (size - this.#offset > this.#log.maxBytes) await this.#skipTo(file, size - this.#log.maxBytes / 2);
      const chunk = await readChunk(file, this.#offset);
      const { lines, bytes } = this.#linesIn(chunk);
      if (bytes === 0) break;
      this.#offset += bytes;
      // Taken after the read: a line must not be dated before its job was taken, or the job's log lacks it.
      const ts = this.#isFirstDrain ? await this.#timeOfFirstOutput(file) : this.#clock.now();
      await this.#log.append(
        lines.map((line) => ({ ts, source: 'container', line })),
        this.#markAt(this.#offset),
      );
      await this.#trim();
    }
    this.#isFirstDrain = false;
  }

  /** Output from before this process has the file's modification time, the best estimate there is. */
  async #timeOfFirstOutput(file: FileHandle): Promise<number> {
    const { mtimeMs } = await file.stat();
    const at = fromWall(this.#clock, Math.round(mtimeMs));
    return at < this.#openedAt ? at : this.#clock.now();
  }

  /**
   * The lines that can be logged now, and the bytes they take. The last line waits for its newline, unless it
   * is over the limit or the output has ended.
   */
  #linesIn(chunk: Buffer): { lines: Buffer[]; bytes: number } {
    const { lines, rest } = splitLines(chunk);
    const isLast = this.#outputEnded && chunk.length < CHUNK_BYTES;
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
    return { lines: ready, bytes };
  }

  /** Skips to the first line that starts at or after the target. */
  async #skipTo(file: FileHandle, target: number): Promise<void> {
    let lines = 0;
    let offset = this.#offset;
    for (;;) {
      const chunk = await readChunk(file, offset);
      if (chunk.length === 0) break;
      for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, end + 1)) {
        lines += 1;
        if (offset + end + 1 < target) continue;
        this.#offset = offset + end + 1;
        this.#isSplitting = false;
        await this.#log.skipLines(lines, this.#markAt(this.#offset));
        return this.#trim();
      }
      offset += chunk.length;
      // One very long line: stop looking for its end.
      if (offset >= target + CHUNK_BYTES) break;
    }
    this.#offset = offset;
    await this.#log.skipLines(lines + 1, this.#markAt(offset));
    await this.#trim();
  }

  #markAt(offset: number): string {
    return `${this.#run} ${offset}`;
  }

  /** Punches a hole where everything is logged. The writer appends, so it is not affected. */
  async #trim(): Promise<void> {
    if (!this.#canTrim || this.#offset - this.#trimmed < TRIM_THRESHOLD_BYTES) return;
    const end = this.#offset - (this.#offset % BLOCK_BYTES);
    try {
      await run('fallocate', [
        '--punch-hole',
        '--offset',
        String(this.#trimmed),
        '--length',
        String(end - this.#trimmed),
        this.#path,
      ]);
      this.#trimmed = end;
    } catch {
      this.#canTrim = false;
      await this.#log.append([
        {
          ts: this.#clock.now(),
          source: 'system',
          line: 'The disk space of what it writes to its output cannot be given back while it runs on this file system.',
        },
      ]);
    }
  }
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

async function openIfThere(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
