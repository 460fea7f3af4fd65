import type { FileHandle } from 'node:fs/promises';
import { open } from 'node:fs/promises';
import type { LogBook } from './log-book.ts';
import type { LogLine, LogQuery } from './log-line.ts';
import { markOf, parseRecord, splitLines } from './record.ts';
import type { Segment } from './segment.ts';

const CHUNK_BYTES = 256 * 1024;

/** Reads a log once through, for one query. Where numbers are missing it says so in a line of its own. */
export class LogReader {
  readonly #book: LogBook;
  readonly #query: LogQuery;
  readonly #signal: AbortSignal | undefined;

  constructor(book: LogBook, query: LogQuery, signal: AbortSignal | undefined) {
    this.#book = book;
    this.#query = query;
    this.#signal = signal;
  }

  async *lines(): AsyncGenerator<LogLine, void, undefined> {
    const { after, follow } = this.#query;
    const afterTs = after !== undefined && 'ts' in after ? after.ts : undefined;
    let expected = await this.#firstSeq();
    while (this.#book.segments.length === 0 && follow && !this.#over()) await this.#book.changed(this.#signal);
    for (let segment = this.#segmentWith(expected); segment !== undefined; segment = this.#segmentAfter(segment)) {
      for await (const line of this.#linesOf(segment, expected)) {
        // How many lines of a time span were dropped is not known: the dropped ones have no time.
        if (line.seq > expected && afterTs === undefined) yield* this.#wanted([dropped(line.seq - expected, line)]);
        expected = line.seq + 1;
        if (afterTs === undefined || line.ts > afterTs) yield* this.#wanted([line]);
      }
      if (this.#signal?.aborted) return;
    }
  }

  #wanted(lines: LogLine[]): LogLine[] {
    const { source } = this.#query;
    return source === undefined ? lines : lines.filter((line) => line.source === source);
  }

  /** Nothing more will come. */
  #over(): boolean {
    return this.#book.ended || this.#signal?.aborted === true;
  }

  async #firstSeq(): Promise<number> {
    const { after, tail, source } = this.#query;
    if (after !== undefined) return 'seq' in after ? after.seq + 1 : 1;
    if (tail === undefined) return 1;
    if (tail === 0) return this.#book.nextSeq;
    let missing = tail;
    const segments = this.#book.segments.toReversed();
    for (const segment of segments) {
      const seqs: number[] = [];
      for await (const line of this.#linesOf(segment, 1, false)) if (source === undefined || line.source === source) seqs.push(line.seq);
      const first = seqs.at(-missing);
      if (seqs.length >= missing && first !== undefined) return first;
      missing -= seqs.length;
    }
    return segments.at(-1)?.firstSeq ?? 1;
  }

  #segmentWith(seq: number): Segment | undefined {
    return this.#book.segments.findLast((segment) => segment.firstSeq <= seq) ?? this.#book.segments[0];
  }

  #segmentAfter({ firstSeq }: Segment): Segment | undefined {
    return this.#book.segments.find((segment) => segment.firstSeq > firstSeq);
  }

  /** The lines of one file from a number on; of the last file also those that are still to come, if they are wanted. */
  async *#linesOf(segment: Segment, from: number, follow = this.#query.follow === true): AsyncGenerator<LogLine, void, undefined> {
    const file = await openIfThere(segment.path);
    if (file === undefined) return;
    try {
      let offset = 0;
      let seq = segment.firstSeq;
      let rest: Buffer = Buffer.alloc(0);
      for (;;) {
        if (this.#signal?.aborted) return;
        if (offset < segment.bytes) {
          const chunk = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, segment.bytes - offset));
          const { bytesRead } = await file.read(chunk, 0, chunk.length, offset);
          if (bytesRead === 0) return;
          offset += bytesRead;
          const split = splitLines(Buffer.concat([rest, chunk.subarray(0, bytesRead)]));
          rest = split.rest;
          for (const line of split.lines) {
            if (markOf(line) !== undefined) continue;
            if (seq >= from) yield { seq, ...parseRecord(line) };
            seq += 1;
          }
        } else if (segment !== this.#book.segments.at(-1) || !follow || this.#over()) return;
        else await this.#book.changed(this.#signal);
      }
    } finally {
      await file.close();
    }
  }
}

/** A line that stands where others are missing. */
function dropped(count: number, next: LogLine): LogLine {
  const line = count === 1 ? '1 line was dropped here: the log keeps the newest lines only' : `${count} lines were dropped here: the log keeps the newest lines only`;
  return { ts: next.ts, seq: next.seq - 1, source: 'system', line };
}

async function openIfThere(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, 'r');
  } catch (error) {
    // The oldest file may go while somebody reads his way to it.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
