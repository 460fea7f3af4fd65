import type { DaemonLine } from './daemon-log-lines.ts';

/** Lines that come at once may stand in the wrong order of their times, by far less than this. */
const REORDER_WINDOW_SECONDS = 2;

/** Where a reading begins. */
export interface LogAnchor {
  /** The daemon is asked for everything since this second. */
  second: number;
  /** The number of the first line that it answers with, counted from 0. */
  index: number;
  /** The time of that line. Another one in its place means that the daemon has dropped some. */
  stamp: string;
}

/**
 * How far the lines of one container are in the log.
 *
 * The daemon's lines have no numbers; it can only be asked for those since a time. So a place is
 * kept as a second (the anchor), the number of the first line since then, and the number of lines
 * that are written down. Asked again for the same second, the daemon gives the same lines, of
 * which the right number is skipped. The anchor moves on only to a second that parts what came
 * before from what came after, with nothing out of order around it.
 */
export class LogCursor {
  readonly #container: string;
  #anchor: LogAnchor;
  #candidates: LogAnchor[] = [];
  #observed: number;
  #newest = -Infinity;
  /** How many lines are written down. */
  written: number;
  /** Everything is written down, the end included. */
  complete: boolean;

  constructor(container: string, checkpoint: string) {
    this.#container = container;
    const [marked, second, index, written, stamp = '', complete] = checkpoint.split(' ');
    const known = marked === container;
    this.#anchor = known
      ? { second: Number(second), index: Number(index), stamp }
      : { second: 0, index: 0, stamp: '' };
    this.written = known ? Number(written) : 0;
    this.complete = known && complete !== undefined;
    this.#observed = this.#anchor.index;
  }

  /** As it is now: while one reading is under way, another may move it on. */
  get anchor(): Readonly<LogAnchor> {
    return { ...this.#anchor };
  }

  /** The mark when so many lines are written down. */
  mark(written: number, complete = false): string {
    const { second, index, stamp } = this.#anchor;
    return [this.#container, second, index, written, stamp, ...(complete ? ['complete'] : [])].join(' ');
  }

  /** What was skipped is gone for good: the next line that comes is one that is not written down. */
  skipLostLines(): void {
    this.#anchor = { second: this.#anchor.second, index: this.written, stamp: '' };
    this.#candidates = [];
    this.#observed = this.written;
  }

  /** Hears of each line, whoever reads it. Those it knows change nothing. */
  observe(index: number, { ts, stamp }: DaemonLine): void {
    if (index !== this.#observed) return;
    this.#observed += 1;
    const second = Math.floor(ts / 1000);
    if (this.#anchor.stamp === '' && index === this.#anchor.index) this.#anchor.stamp = stamp;
    if (second > this.#newest) {
      this.#newest = second;
      this.#candidates.push({ second, index, stamp });
    } else this.#candidates = this.#candidates.filter((candidate) => candidate.second <= second);
    const settled = this.#candidates.findLastIndex(
      (candidate) => candidate.second <= this.#newest - REORDER_WINDOW_SECONDS,
    );
    if (settled === -1) return;
    this.#anchor = this.#candidates[settled] as LogAnchor;
    this.#candidates = this.#candidates.slice(settled);
  }
}

/** Whether the daemon's answer begins where the reading did. */
export function startsAtAnchor({ stamp }: Readonly<LogAnchor>, first: DaemonLine): boolean {
  return stamp === '' || stamp === first.stamp;
}
