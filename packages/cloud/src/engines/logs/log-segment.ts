import { join } from 'node:path';

/** One file of a log. */
export interface LogSegment {
  path: string;
  /** The number of its first line, which is also its name. */
  firstSeq: number;
  /** As far as it is whole. */
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

/** The number in a file's name; undefined where the file is none of ours. */
export function firstSeqOf(name: string): number | undefined {
  return name.endsWith(FILE_EXTENSION) ? Number(name.slice(0, -FILE_EXTENSION.length)) : undefined;
}
