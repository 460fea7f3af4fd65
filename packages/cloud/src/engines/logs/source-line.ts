/** A line of the log that a container runtime keeps. */
export interface SourceLine {
  /** The runtime's timestamp, with nanoseconds. */
  stamp: string;
  ts: number;
  line: Buffer;
}

const CARRIAGE_RETURN = 0x0d;

export function withoutReturn(line: Buffer): Buffer {
  return line.at(-1) === CARRIAGE_RETURN ? line.subarray(0, -1) : line;
}
