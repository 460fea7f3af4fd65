import type { FileHandle } from 'node:fs/promises';
import { mkdir, open, readdir, readFile, rm, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { DEFAULT_LOG_LIMITS } from '../../domain/limits.ts';
import type { LogLine, LogQuery } from '../../domain/log-line.ts';
import { LogReader } from './log-reader.ts';
import type { NewLogLines, NewLogRecord } from './log-record.ts';
import { formatBatch, formatCheckpoint, readCommitted } from './log-record.ts';
import type { LogSegment } from './log-segment.ts';
import { firstSeqOf, segmentAt } from './log-segment.ts';

const SEGMENTS = 8;

/**
 * The log of one instance in its own folder: numbered lines in segment files of equal size. The oldest
 * segment is deleted when there are too many.
 * Lines are written in batches. Each batch ends with a checkpoint that holds a mark: the position of the
 * writer in its source. Data after the last checkpoint is from an interrupted write and is ignored. So a
 * writer that restarts reads the mark, continues there, and neither loses nor repeats a line.
 */
export class SegmentedLog {
  readonly folder: string;
  readonly #segmentBytes: number;
  readonly #segments: LogSegment[];
  readonly #waiting = new Set<() => void>();
  #nextSeq = 1;
  #checkpoint = '';
  #lastTs = 0;
  #ended: boolean;
  #file: FileHandle | undefined;
  #writing: Promise<void> = Promise.resolve();

  private constructor(folder: string, maxBytes: number, segments: LogSegment[], ended: boolean) {
    this.folder = folder;
    this.#segmentBytes = Math.ceil(maxBytes / SEGMENTS);
    this.#segments = segments;
    this.#ended = ended;
  }

  /** Opens the log for writing. A log has one writer at a time. */
  static async open(folder: string, maxBytes = DEFAULT_LOG_LIMITS.bytes): Promise<SegmentedLog> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const log = new SegmentedLog(folder, maxBytes, await segmentsIn(folder), false);
    const last = await log.#readLast();
    if (last !== undefined) await truncate(last.path, last.bytes);
    return log;
  }

  /** Opens the log for reading when no writer is left. */
  static async openReadOnly(folder: string): Promise<SegmentedLog> {
    const log = new SegmentedLog(folder, DEFAULT_LOG_LIMITS.bytes, await segmentsIn(folder), true);
    await log.#readLast();
    return log;
  }

  /** The mark of the last batch; empty if there is none. */
  get mark(): string {
    return this.#checkpoint;
  }

  get maxBytes(): number {
    return this.#segmentBytes * SEGMENTS;
  }

  /** The sequence number of the next line. */
  get nextSeq(): number {
    return this.#nextSeq;
  }

  get segments(): readonly LogSegment[] {
    return this.#segments;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Without a mark the last one is kept. */
  append(records: readonly (NewLogRecord | NewLogLines)[], mark?: string): Promise<void> {
    return this.#runInOrder(async () => {
      const file = (this.#file ??= await this.#openFile());
      const active = this.#segments.at(-1) as LogSegment;
      const inOrder = records.map((record) => ({
        ...record,
        ts: (this.#lastTs = Math.max(this.#lastTs, record.ts)),
      }));
      const newMark = mark ?? this.#checkpoint;
      const batch = formatBatch(inOrder, newMark);
      try {
        await file.appendFile(batch);
      } catch (error) {
        // Remove a partial batch before the next one is written.
        await file.truncate(active.bytes);
        throw error;
      }
      active.bytes += batch.length;
      for (const record of records) this.#nextSeq += 'lines' in record ? record.count : 1;
      this.#checkpoint = newMark;
      if (active.bytes >= this.#segmentBytes) await this.#closeFile();
    });
  }

  /** No more lines will come: followers read the rest and end. */
  end(): Promise<void> {
    return this.#runInOrder(async () => {
      this.#ended = true;
      await this.#closeFile();
    });
  }

  async *lines(query: LogQuery = {}, signal?: AbortSignal): AsyncGenerator<LogLine, void, undefined> {
    for await (const batch of new LogReader(this, query, signal).batches())
      for (const line of batch) yield line;
  }

  /** Resolves at the next change of the log, or on the signal. */
  async waitForChange(signal?: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = (): void => resolve();
    this.#waiting.add(wake);
    signal?.addEventListener('abort', wake);
    if (signal?.aborted) wake();
    await promise;
    this.#waiting.delete(wake);
    signal?.removeEventListener('abort', wake);
  }

  /**
   * Runs operations one after the other and wakes the readers after each. A failure is reported to the
   * caller; the next operation still runs.
   */
  #runInOrder(work: () => Promise<void>): Promise<void> {
    const done = this.#writing.then(work);
    this.#writing = done.then(
      () => this.#wake(),
      () => this.#wake(),
    );
    return done;
  }

  #wake(): void {
    for (const resolve of this.#waiting) resolve();
  }

  async #readLast(): Promise<LogSegment | undefined> {
    const last = this.#segments.at(-1);
    if (last === undefined) return undefined;
    const committed = readCommitted(await readFile(last.path));
    last.bytes = committed.bytes;
    this.#nextSeq = last.firstSeq + committed.records;
    this.#checkpoint = committed.mark;
    this.#lastTs = committed.lastTs;
    return last;
  }

  async #openFile(): Promise<FileHandle> {
    const last = this.#segments.at(-1);
    return last !== undefined && last.bytes > 0 && last.bytes < this.#segmentBytes
      ? open(last.path, 'a')
      : this.#newFile();
  }

  /** A new segment starts with the mark, so the mark survives even if nothing else is written to it. */
  async #newFile(): Promise<FileHandle> {
    const head = formatCheckpoint(this.#checkpoint);
    const segment = segmentAt(this.folder, this.#nextSeq, head.length);
    const file = await open(segment.path, 'w', 0o600);
    await file.appendFile(head);
    if (this.#segments.at(-1)?.firstSeq === segment.firstSeq) this.#segments.pop();
    this.#segments.push(segment);
    while (this.#segments.length > SEGMENTS)
      await rm((this.#segments.shift() as LogSegment).path, { force: true });
    return file;
  }

  async #closeFile(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    await file?.close();
  }
}

async function segmentsIn(folder: string): Promise<LogSegment[]> {
  const segments: LogSegment[] = [];
  for (const name of await namesIn(folder)) {
    const firstSeq = firstSeqOf(name);
    if (firstSeq !== undefined)
      segments.push(segmentAt(folder, firstSeq, (await stat(join(folder, name))).size));
  }
  return segments.sort((one, other) => one.firstSeq - other.firstSeq);
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
