import { join } from 'node:path';

/** One file of a log. */
export interface Segment {
  path: string;
  /** The number of its first line, which is also its name. */
  firstSeq: number;
  /** As far as it is whole. */
  bytes: number;
}

const ENDING = '.lines';
const DIGITS = 15;

export function segmentAt(folder: string, firstSeq: number, bytes: number): Segment {
  return { path: join(folder, `${String(firstSeq).padStart(DIGITS, '0')}${ENDING}`), firstSeq, bytes };
}

/** The number in a file's name; undefined where the file is none of ours. */
export function firstSeqOf(name: string): number | undefined {
  return name.endsWith(ENDING) ? Number(name.slice(0, -ENDING.length)) : undefined;
}
