import type { Frame } from './stream-frames.ts';

/** A line of the daemon's log. */
export interface DaemonLine {
  /** The daemon's timestamp, with nanoseconds. */
  stamp: string;
  ts: number;
  line: Buffer;
}

/** Longer lines are split. */
const MAX_LINE_BYTES = 64 * 1024;
const SPACE = 0x20;
const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/**
 * Assembles lines from frames. Each frame is a timestamp, a space, and a line or a part of one: the daemon
 * splits lines over 16 KB. A line has the timestamp of its last part.
 */
export class LineAssembler {
  readonly #parts: Record<Frame['stream'], Buffer[]> = { stdout: [], stderr: [] };

  push(frames: readonly Frame[]): DaemonLine[] {
    return frames.flatMap((frame) => this.#addFrame(frame) ?? []);
  }

  /** The unfinished lines, when the stream has ended. */
  rest(ts: number): DaemonLine[] {
    const open = Object.values(this.#parts).filter((parts) => parts.length > 0);
    return open.map((parts) => ({ stamp: '', ts, line: withoutReturn(Buffer.concat(parts.splice(0))) }));
  }

  #addFrame({ stream, payload }: Frame): DaemonLine | undefined {
    const space = payload.indexOf(SPACE);
    const stamp = payload.toString('latin1', 0, space);
    const ends = payload.at(-1) === NEWLINE;
    const part = payload.subarray(space + 1, ends ? -1 : undefined);
    const parts = this.#parts[stream];
    parts.push(part);
    if (!ends && parts.reduce((sum, { length }) => sum + length, 0) < MAX_LINE_BYTES) return undefined;
    const line = parts.length === 1 ? part : Buffer.concat(parts);
    parts.length = 0;
    return { stamp, ts: Date.parse(stamp), line: ends ? withoutReturn(line) : line };
  }
}

function withoutReturn(line: Buffer): Buffer {
  return line.at(-1) === CARRIAGE_RETURN ? line.subarray(0, -1) : line;
}
