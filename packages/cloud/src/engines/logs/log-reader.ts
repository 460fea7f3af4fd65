import type { FileHandle } from 'node:fs/promises';
import { open } from 'node:fs/promises';
import type { LogLine, LogQuery } from '../../domain/log-line.ts';
import { checkpointOf, parseRecord, splitLines } from './log-record.ts';
import type { LogSegment } from './log-segment.ts';

const CHUNK_BYTES = 256 * 1024;

/** A log that may still grow. */
export interface ReadableLog {
  readonly segments: readonly LogSegment[];
  readonly nextSeq: number;
  /** No more lines will be written. */
  readonly ended: boolean;
  waitForChange(signal?: AbortSignal): Promise<void>;
}

/** Reads a log once, for one query. Missing sequence numbers are reported in a line of their own. */
export class LogReader {
  readonly #log: ReadableLog;
  readonly #query: LogQuery;
  readonly #signal: AbortSignal | undefined;
  /** The first line that is not wanted any more. */
  readonly #before: number;

  constructor(log: ReadableLog, query: LogQuery, signal: AbortSignal | undefined) {
    this.#log = log;
    this.#query = query;
    this.#signal = signal;
    this.#before = query.before?.seq ?? Infinity;
  }

  /** In batches: one promise per line would cost more than the lines. */
  async *batches(): AsyncGenerator<LogLine[], void, undefined> {
    const { after, before } = this.#query;
    const follow = this.#query.follow === true && before === undefined;
    const afterTs = after !== undefined && 'ts' in after ? after.ts : undefined;
    let expected = await this.#firstSeq();
    while (this.#log.segments.length === 0 && follow && !this.#isEnded())
      await this.#log.waitForChange(this.#signal);
    for (
      let segment = this.#segmentWith(expected);
      segment !== undefined && segment.firstSeq < this.#before;
      segment = this.#segmentAfter(segment)
    ) {
      for await (const lines of this.#linesOf(segment, expected, follow)) {
        const batch = lines.filter(({ ts }) => afterTs === undefined || ts > afterTs);
        const [first] = lines;
        // The number of dropped lines in a time span is unknown: dropped lines have no time.
        if (first !== undefined && first.seq > expected && afterTs === undefined)
          batch.unshift(dropped(first.seq - expected, first));
        expected = (lines.at(-1)?.seq ?? expected - 1) + 1;
        const wanted = batch.filter((line) => this.#isWanted(line));
        if (wanted.length > 0) yield wanted;
      }
      if (this.#signal?.aborted) return;
    }
  }

  #isWanted({ source }: LogLine): boolean {
    return this.#query.source === undefined || source === this.#query.source;
  }

  /** No more lines will come. */
  #isEnded(): boolean {
    return this.#log.ended || this.#signal?.aborted === true;
  }

  async #firstSeq(): Promise<number> {
    const { after, tail } = this.#query;
    if (after !== undefined) return 'seq' in after ? after.seq + 1 : 1;
    if (tail === undefined) return 1;
    if (tail === 0) return Math.min(this.#before, this.#log.nextSeq);
    let missing = tail;
    const segments = this.#log.segments.filter(({ firstSeq }) => firstSeq < this.#before).toReversed();
    for (const segment of segments) {
      const wanted = (await Array.fromAsync(this.#linesOf(segment, 1, false)))
        .flat()
        .filter((line) => this.#isWanted(line));
      const first = wanted.length >= missing ? wanted.at(-missing) : undefined;
      if (first !== undefined) return first.seq;
      missing -= wanted.length;
    }
    return segments.at(-1)?.firstSeq ?? 1;
  }

  #segmentWith(seq: number): LogSegment | undefined {
    return this.#log.segments.findLast((segment) => segment.firstSeq <= seq) ?? this.#log.segments[0];
  }

  #segmentAfter({ firstSeq }: LogSegment): LogSegment | undefined {
    return this.#log.segments.find((segment) => segment.firstSeq > firstSeq);
  }

  /**
   * The lines of one segment from a sequence number on. In the last segment, `follow` waits for new lines.
   */
  async *#linesOf(
    segment: LogSegment,
    from: number,
    follow: boolean,
  ): AsyncGenerator<LogLine[], void, undefined> {
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
          const lines: LogLine[] = [];
          for (const line of split.lines) {
            if (checkpointOf(line) !== undefined) continue;
            if (seq >= from && seq < this.#before) lines.push({ seq, ...parseRecord(line) });
            seq += 1;
          }
          yield lines;
          if (seq >= this.#before) return;
        } else if (segment !== this.#log.segments.at(-1) || !follow || this.#isEnded()) return;
        else await this.#log.waitForChange(this.#signal);
      }
    } finally {
      await file.close();
    }
  }
}

/** The line that replaces dropped lines. */
function dropped(count: number, next: LogLine): LogLine {
  const line =
    count === 1
      ? '1 line was dropped here: the log keeps the newest lines only'
      : `${count} lines were dropped here: the log keeps the newest lines only`;
  return { ts: next.ts, seq: next.seq - 1, source: 'system', line };
}

async function openIfThere(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, 'r');
  } catch (error) {
    // The oldest segment may be deleted before a reader reaches it.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
