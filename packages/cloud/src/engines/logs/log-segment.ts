import { join } from 'node:path';

/** One file of a log. */
export interface LogSegment {
  path: string;
  /** The sequence number of its first line, which is also its file name. */
  firstSeq: number;
  /** The length of the committed part. */
  bytes: number;
}

const FILE_EXTENSION = '.lines';
const DIGITS = 15;

export function segmentAt(folder: string, firstSeq: number, bytes: number): LogSegment {
  return {
    path: join(folder, `${String(firstSeq).padStart(DIGITS, '0')}${FILE_EXTENSION}`),
    firstSeq,
    bytes,
  };
}

/** The sequence number in a file name; undefined if it is not a segment. */
export function firstSeqOf(name: string): number | undefined {
  return name.endsWith(FILE_EXTENSION) ? Number(name.slice(0, -FILE_EXTENSION.length)) : undefined;
}
