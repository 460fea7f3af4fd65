import { type SourceLine, withoutReturn } from '../logs/source-line.ts';
import type { Frame } from './client/stream-frames.ts';

/** Longer lines are split. */
const MAX_LINE_BYTES = 64 * 1024;
const SPACE = 0x20;
const NEWLINE = 0x0a;

/**
 * Assembles lines from frames. Each frame is a timestamp, a space, and a line or a part of one: the daemon
 * splits lines over 16 KB. A line has the timestamp of its last part.
 */
export class LineAssembler {
  readonly #parts: Record<Frame['stream'], Buffer[]> = { stdout: [], stderr: [] };

  push(frames: readonly Frame[]): SourceLine[] {
    return frames.flatMap((frame) => this.#addFrame(frame) ?? []);
  }

  /** The unfinished lines, when the stream has ended. */
  rest(ts: number): SourceLine[] {
    const open = Object.values(this.#parts).filter((parts) => parts.length > 0);
    return open.map((parts) => ({ stamp: '', ts, line: withoutReturn(Buffer.concat(parts.splice(0))) }));
  }

  #addFrame({ stream, payload }: Frame): SourceLine | undefined {
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
