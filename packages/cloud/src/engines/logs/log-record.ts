import type { LogSource } from '../../domain/log-line.ts';

/**
 * The format of a segment file. A record is `<milliseconds> <c or s> <line>`, with the bytes unchanged. A
 * line that starts with `= ` is a checkpoint, see SegmentedLog.
 */
export interface LogRecord {
  ts: number;
  source: LogSource;
  line: string;
}

export interface NewLogRecord {
  ts: number;
  source: LogSource;
  line: Buffer | string;
}

const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const CHECKPOINT_BYTE = 0x3d;
const CHECKPOINT_PREFIX = '= ';
const SOURCE_LETTERS: Readonly<Record<LogSource, string>> = { container: 'c', system: 's' };

/** Several lines of one moment. Each ends with a newline. */
export interface NewLogLines {
  ts: number;
  source: LogSource;
  lines: Buffer;
  count: number;
}

/**
 * A batch of records, followed by the checkpoint that commits it. A program may write 100,000 lines a second, and
 * nobody is served meanwhile: a line among others takes 0.2 µs here, and 1.3 µs with a buffer for each of its parts.
 */
export function formatBatch(records: readonly (NewLogRecord | NewLogLines)[], mark: string): Buffer {
  return Buffer.concat([
    ...records.map((record) => {
      const prefix = Buffer.from(`${record.ts} ${SOURCE_LETTERS[record.source]} `);
      if ('lines' in record) return withPrefix(record, prefix);
      const { line } = record;
      const text = typeof line === 'string' ? Buffer.from(line.replaceAll('\n', ' ')) : line;
      return Buffer.concat([prefix, text, Buffer.of(NEWLINE)]);
    }),
    formatCheckpoint(mark),
  ]);
}

function withPrefix({ lines, count }: NewLogLines, prefix: Buffer): Buffer {
  const batch = Buffer.allocUnsafe(lines.length + count * prefix.length);
  let at = 0;
  for (let from = 0; from < lines.length; ) {
    batch.set(prefix, at);
    at += prefix.length;
    let byte: number;
    do {
      byte = lines[from] as number;
      batch[at] = byte;
      at += 1;
      from += 1;
    } while (byte !== NEWLINE);
  }
  return batch;
}

export function formatCheckpoint(mark: string): Buffer {
  return Buffer.from(`${CHECKPOINT_PREFIX}${mark}\n`);
}

/** The mark of a checkpoint line; undefined for a record. */
export function checkpointOf(line: Buffer): string | undefined {
  return line[0] === CHECKPOINT_BYTE ? line.toString('utf8', CHECKPOINT_PREFIX.length) : undefined;
}

/** The committed part of a file, up to its last checkpoint. */
export function readCommitted(bytes: Buffer): {
  bytes: number;
  records: number;
  mark: string;
  lastTs: number;
} {
  const committed = { bytes: 0, records: 0, mark: '', lastTs: 0 };
  let records = 0;
  let lastTs = 0;
  let offset = 0;
  for (const line of splitLines(bytes).lines) {
    offset += line.length + 1;
    const mark = checkpointOf(line);
    if (mark === undefined) {
      records += 1;
      lastTs = parseRecord(line).ts;
    } else Object.assign(committed, { bytes: offset, records, mark, lastTs });
  }
  return committed;
}

export function parseRecord(line: Buffer): LogRecord {
  const space = line.indexOf(0x20);
  return {
    ts: Number(line.toString('latin1', 0, space)),
    source: line[space + 1] === 0x73 ? 'system' : 'container',
    line: line.toString('utf8', space + 3),
  };
}

/** The complete lines, without their newlines, and the rest after the last newline. */
export function splitLines(bytes: Buffer): { lines: Buffer[]; rest: Buffer } {
  const lines: Buffer[] = [];
  let start = 0;
  for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, start)) {
    lines.push(bytes.subarray(start, end));
    start = end + 1;
  }
  return { lines, rest: bytes.subarray(start) };
}

/**
 * The complete lines at the begin, if they can be logged as they are: none is over the limit or ends with a carriage
 * return.
 */
export function plainLines(
  bytes: Buffer,
  maxLineBytes: number,
): { lines: Buffer; count: number } | undefined {
  let count = 0;
  let start = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    if (bytes[at] !== NEWLINE) continue;
    if (at - start > maxLineBytes || (at > start && bytes[at - 1] === CARRIAGE_RETURN)) return undefined;
    count += 1;
    start = at + 1;
  }
  return { lines: bytes.subarray(0, start), count };
}
