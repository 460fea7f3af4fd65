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
const CHECKPOINT_BYTE = 0x3d;
const CHECKPOINT_PREFIX = '= ';
const SOURCE_LETTERS: Readonly<Record<LogSource, string>> = { container: 'c', system: 's' };

/** A batch of records, followed by the checkpoint that commits it. */
export function formatBatch(records: readonly NewLogRecord[], mark: string): Buffer {
  const parts: Buffer[] = [];
  for (const { ts, source, line } of records) {
    parts.push(
      Buffer.from(`${ts} ${SOURCE_LETTERS[source]} `),
      typeof line === 'string' ? Buffer.from(line.replaceAll('\n', ' ')) : line,
      Buffer.of(NEWLINE),
    );
  }
  parts.push(formatCheckpoint(mark));
  return Buffer.concat(parts);
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
