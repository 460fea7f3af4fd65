import { execFile } from 'node:child_process';
import type { FileHandle } from 'node:fs/promises';
import { open } from 'node:fs/promises';
import { promisify } from 'node:util';
import type { Clock } from '../../support/clock.ts';
import type { SegmentedLog } from '../logs/segmented-log.ts';
import { splitLines } from '../logs/log-record.ts';

const run = promisify(execFile);

const CHUNK_BYTES = 256 * 1024;
/** A longer line is told in pieces. */
const MAX_LINE_BYTES = 64 * 1024;
/** So much that is in the log by now is given back to the disk at a time. */
const TRIM_THRESHOLD_BYTES = 4 * 1024 * 1024;
const BLOCK_BYTES = 4096;
const CARRIAGE_RETURN = 0x0d;
const NEWLINE = 0x0a;

export interface OutputSpoolOptions {
  path: string;
  /** Which run of the instance wrote it: the log's mark is `<run> <offset>`. */
  run: string;
  log: SegmentedLog;
  clock: Clock;
}

/**
 * Carries what an instance writes from its output file to its log. The instance writes to the
 * file and never to us, so it neither waits for us nor ends with us; what was written while
 * nobody read is read later. Of far too much output the beginning is only counted.
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
  /** Inside a line that is told in pieces. */
  #isSplitting = false;
  #toTheEnd = false;
  /** What lies here from before is as old as the file's last change, as far as can be known. */
  #old = true;
  #round: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #closed = false;

  constructor({ path, run: runName, log, clock }: OutputSpoolOptions) {
    this.#path = path;
    this.#run = runName;
    this.#log = log;
    this.#clock = clock;
    const [markedRun, offset] = log.mark.split(' ');
    this.#offset = markedRun === runName ? Number(offset) : 0;
    this.#trimmed = 0;
  }

  /** Resolves when everything that was written before the call is in the log. */
  drain(): Promise<void> {
    if (this.#round === undefined)
      return (this.#round = this.#carry().finally(() => (this.#round = undefined)));
    return (this.#next ??= this.#round
      .catch(() => undefined)
      .then(() => {
        this.#next = undefined;
        return this.drain();
      }));
  }

  /** Nobody writes any more: the rest, also a last line without an end. */
  async finish(): Promise<void> {
    this.#toTheEnd = true;
    await this.drain();
    await this.close();
  }

  async close(): Promise<void> {
    this.#closed = true;
    await (this.#next ?? this.#round)?.catch(() => undefined);
    const file = this.#file;
    this.#file = undefined;
    await file?.close();
  }

  async #carry(): Promise<void> {
    if (this.#closed) return;
    const file = (this.#file ??= await openIfThere(this.#path));
    if (file === undefined) return;
    while (!this.#closed) {
      const { size, mtimeMs } = await file.stat();
      const ts = this.#old ? Math.min(Math.round(mtimeMs), this.#clock.now()) : this.#clock.now();
      if (size - this.#offset > this.#log.maxBytes) await this.#skipTo(file, size - this.#log.maxBytes / 2);
      const chunk = await readChunk(file, this.#offset);
      const { lines, bytes } = this.#linesIn(chunk);
      if (bytes === 0) break;
      this.#offset += bytes;
      await this.#log.append(
        lines.map((line) => ({ ts, source: 'container', line })),
        this.#markAt(this.#offset),
      );
      await this.#trim();
    }
    this.#old = false;
  }

  /** The lines that can be told now, and how many bytes that takes. The last one waits for its end, unless it is too long or there will be none. */
  #linesIn(chunk: Buffer): { lines: Buffer[]; bytes: number } {
    const { lines, rest } = splitLines(chunk);
    const isLast = this.#toTheEnd && chunk.length < CHUNK_BYTES;
    const told: Buffer[] = [];
    let bytes = 0;
    for (const line of lines) {
      bytes += line.length + 1;
      // The end of a line whose pieces were all told.
      if (!this.#isSplitting || line.length > 0) told.push(...splitLongLine(withoutReturn(line)));
      this.#isSplitting = false;
    }
    const ready = isLast ? rest.length : rest.length - (rest.length % MAX_LINE_BYTES);
    if (ready > 0) {
      told.push(...splitLongLine(rest.subarray(0, ready)));
      bytes += ready;
      this.#isSplitting = true;
    }
    return { lines: told, bytes };
  }

  /** To the beginning of a line at or after this place. */
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
      // One endless line.
      if (offset >= target + CHUNK_BYTES) break;
    }
    this.#offset = offset;
    await this.#log.skipLines(lines + 1, this.#markAt(offset));
    await this.#trim();
  }

  #markAt(offset: number): string {
    return `${this.#run} ${offset}`;
  }

  /** Makes a hole in the file where everything is in the log: whoever writes on at its end does not notice. */
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
